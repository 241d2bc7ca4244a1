"""The page on which a user writes a text to one customer; consent, hours and caps are checked as for every text."""

from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, TEXT, ById, new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile
from regulars.texts.find import find_text
from regulars.texts.labels import label_reason
from regulars.texts.pages.message_view import load_texting_of
from regulars.texts.pages.plain_text import ONCE, QUEUED, SENT_BEFORE, read_once, read_plain_text
from regulars.texts.request import TextOrder, compose_for, request_texts
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

CUSTOMERS: Final = "/customers"
TEMPLATE: Final = "texts/person.html"


async def write_text(visit: Visit, form: FormState | None = None, *, text: str = "") -> Response:
    async with visit.database.reading() as tx:
        values = await _page_values(tx, visit, text)
    return render_form(visit, TEMPLATE, form or FormState({ONCE: str(new_uuid())}), **values)


async def send_text(visit: Visit) -> Response:
    form = FormState(visit.form)
    text = read_plain_text(form, "words")
    once = read_once(form)
    if form.is_refused or visit.form.get("act") == "preview":
        return await write_text(visit, form, text=text)
    async with visit.database.transaction() as tx:
        profile = await _find_customer_in_path(tx, visit)
        order = TextOrder(origin_kind=OriginKind.PERSON, origin_id=once, step="1", rendered=text, profile_id=profile.id)
        [placed] = await request_texts(tx, visit.organization_id, [order], texting=await load_texting_of(tx, visit))
        stored = await find_text(tx, visit.organization_id, placed.id)
        if placed.is_new:
            await record_act(tx, visit, "text.send", TEXT.encode(placed.id))
    skipped = None if stored is None else label_reason(stored.reason)
    if not placed.is_new:
        done = SENT_BEFORE
    elif skipped is None:
        done = QUEUED
    else:
        done = f"The text is not sent. {skipped.sentence}"
    return redirect(visit, visit.url(CUSTOMERS, PROFILE.encode(profile.id)), done=done)


async def _find_customer_in_path(tx: Tx, visit: Visit) -> Profile:
    profile_id = PROFILE.decode(visit.references[0])
    profile = None if profile_id is None else await find_profile(tx, visit.organization_id, ById(profile_id))
    if profile is None:
        raise PageNotFound("No customer has this ID. They may have been erased.")
    return profile


async def _page_values(tx: Tx, visit: Visit, text: str) -> dict[str, Any]:
    profile = await _find_customer_in_path(tx, visit)
    numbers = await find_text_numbers(tx, visit.organization_id, [profile.id])
    number: TextNumber | None = numbers.get(profile.id)
    preview = None
    if text and number is not None:
        preview = compose_for(text, number, await load_texting_of(tx, visit))
    return {
        "name": mask.name(visit, profile.first_name, profile.last_name) or mask.text(visit, profile.external_id),
        "number": number,
        "preview": preview,
        "customer_url": visit.url(CUSTOMERS, PROFILE.encode(profile.id)),
    }


PAGES: Final = (
    Page(path=f"{CUSTOMERS}/{{customer}}/text", needs=Action.WRITE_TEXTS, handle=write_text),
    Form(path=f"{CUSTOMERS}/{{customer}}/text", needs=Action.WRITE_TEXTS, handle=send_text, harm=Harm.CHANGES),
)
