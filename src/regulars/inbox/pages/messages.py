"""The pages of sent and received messages: the list, one text, sending it again, and the conversation with a number."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.accounts.audit.log import record_act
from regulars.consent.chain import hash_number
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.find import find_by_number_hash
from regulars.consent.phone import read_consent_number
from regulars.inbox.find import count_undecided, list_messages, read_conversation
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, REPLY, SUBSCRIPTION, TEXT, ById, first_id_at
from regulars.kit.keyset import PageRequest, PageRows
from regulars.profiles.find import find_profile
from regulars.texts.errors import MessagingError
from regulars.texts.find import find_suppressed, find_text
from regulars.texts.labels import REASONS, STATES
from regulars.texts.model import MessageFilter, MessageListItem, TextRow
from regulars.texts.pages.message_view import INBOX, MESSAGES, NUMBERS, MessageView, read_hash
from regulars.texts.pages.skip_view import explain_skip
from regulars.texts.request import resend
from regulars.texts.settings.store import load_texting
from regulars.texts.text_origins import OriginFinders, find_origins
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import Filter, ListView, make_page, read_all_rows, read_view
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

CSV_HEADER: Final = ("id", "direction", "at", "number", "customer", "state", "reason", "parts", "origin", "text")
MESSAGES_SHOWN_MAX: Final = 60
UNDECIDED: Final = "undecided"
UNDECIDED_COUNTED_MAX: Final = 100


def filters(visit: Visit) -> tuple[Filter, ...]:
    placeholder = "Full phone number or message ID" if visit.sees_personal else "txt_… or rpl_…"
    states = tuple((state.value, label.name) for state, label in STATES.items())
    return (
        Filter("q", "Find a number or a message", kind="search", placeholder=placeholder),
        Filter("direction", "Direction", (("sent", "Sent"), ("received", "Received"))),
        Filter("state", "State", (*states, (UNDECIDED, "Reply waits for you"))),
        Filter("reason", "Reason", tuple((reason.value, label.name) for reason, label in REASONS.items())),
        Filter("from", "From", kind="date"),
        Filter("to", "To", kind="date"),
    )


async def show_messages(finders: OriginFinders, visit: Visit) -> Response:
    view = read_view(visit, "messages", MESSAGES, filters=filters(visit))
    text = view.value("q")
    if text and (target := _url_of_exact_match(visit, text)) is not None and not visit.is_htmx:
        return redirect(visit, target)
    async with visit.database.transaction() as tx:
        rows = PageRows() if text else await _list_page(tx, visit, view, view.request)
        texting = await load_texting(tx, visit.organization_id)
        undecided = await count_undecided(tx, visit.organization_id, limit=UNDECIDED_COUNTED_MAX)
        page = make_page(view, rows)
        origins = await find_origins(tx, visit.organization_id, finders, page.rows)
    return render(
        visit,
        "inbox/messages.html",
        view=view,
        page=page,
        shown=MessageView(visit),
        texting=texting,
        undecided=undecided,
        found_url=_url_of_exact_match(visit, text) if text else None,
        origins=origins,
    )


def _url_of_exact_match(visit: Visit, text: str) -> str | None:
    """The URL of the page for a phone number or message id that the visitor typed in full; None if the text is neither.
    A visitor who may not see personal data cannot look up numbers."""
    if TEXT.decode(text) is not None:
        return visit.url(MESSAGES, text)
    if REPLY.decode(text) is not None:
        return visit.url(INBOX, text)
    if not visit.sees_personal:
        return None
    try:
        return visit.url(NUMBERS, hash_number(visit.organization.secret, read_consent_number(text)).hex())
    except InvalidPhoneNumber:
        return None


def message_filter_of(visit: Visit, view: ListView) -> MessageFilter:
    state, reason, direction = view.value("state"), view.value("reason"), view.value("direction")
    is_undecided = state == UNDECIDED
    since, until = view.start_of("from", visit.format.zone), view.start_of("to", visit.format.zone, days_later=1)
    return MessageFilter(
        is_sent=direction != "received" and not is_undecided,
        is_received=direction != "sent" and not reason and (is_undecided or not state),
        state=None if is_undecided else state or None,
        reason=reason or None,
        is_undecided=is_undecided or None,
        since=None if since is None else first_id_at(since),
        until=None if until is None else first_id_at(until),
    )


async def _list_page(tx: Tx, visit: Visit, view: ListView, page: PageRequest) -> PageRows[MessageListItem]:
    return await list_messages(tx, visit.organization_id, message_filter_of(visit, view), page)


async def export_messages(visit: Visit) -> Response:
    view = read_view(visit, "messages", MESSAGES, filters=filters(visit))
    messages = read_all_rows(visit.database.transaction, lambda tx, page: _list_page(tx, visit, view, page))
    rows = (_csv_row(visit, message) async for message in messages)
    return export_csv(visit, "messages.export", "messages.csv", CSV_HEADER, rows)


def _csv_row(visit: Visit, message: MessageListItem) -> list[str]:
    return [
        (REPLY if message.is_received else TEXT).encode(message.id),
        "received" if message.is_received else "sent",
        format_timestamp(message.at),
        (message.phone_number if visit.sees_personal else mask.phone(visit, message.phone_number)) or "",
        "" if message.profile_id is None else PROFILE.encode(message.profile_id),
        message.state,
        (message.reason or "") if visit.sees_personal else (message.reason or "").partition(":")[0],
        str(message.parts) if not message.is_received else "",
        message.origin_kind,
        mask.text(visit, message.body) or "",
    ]


async def _find_text_in_path(tx: Tx, visit: Visit) -> TextRow:
    text_id = TEXT.decode(visit.references[0])
    text = None if text_id is None else await find_text(tx, visit.organization_id, text_id)
    if text is None:
        raise PageNotFound(
            "There is no text with this ID. We store texts for 25 months, or until the person is erased."
        )
    return text


# Renders a part of the page of a text.
TextCard = Callable[[Tx, Visit, TextRow], Awaitable[Markup]]


async def show_text(finders: OriginFinders, attribution_card: TextCard, visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        text = await _find_text_in_path(tx, visit)
        origins = await find_origins(tx, visit.organization_id, finders, [text])
        customer = None
        if text.profile_id is not None:
            customer = await find_profile(tx, visit.organization_id, ById(text.profile_id))
        purchases_card = await attribution_card(tx, visit, text)
        origin = origins.get(text.origin_id)
        skip = await explain_skip(tx, visit, finders, text, origin)
    return render(
        visit,
        "inbox/text.html",
        text=text,
        purchases_card=purchases_card,
        identifier=TEXT.encode(text.id),
        customer=customer,
        shown=MessageView(visit),
        origin=origin,
        skip=skip,
        may_resend=visit.may(Action.WRITE_TEXTS) and text.state in {"unknown", "failed"},
    )


async def ask_to_resend(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        text = await _find_text_in_path(tx, visit)
    values: dict[str, Any] = {"text": text, "shown": MessageView(visit), "identifier": TEXT.encode(text.id)}
    return render_form(visit, "inbox/resend.html", form or FormState(), **values)


async def send_again(visit: Visit) -> Response:
    with FormState(visit.form, again=ask_to_resend).refusing("text", MessagingError):
        async with visit.database.transaction() as tx:
            text = await _find_text_in_path(tx, visit)
            await resend(tx, visit.organization_id, text.id)
            await record_act(tx, visit, "text.resend", TEXT.encode(text.id), before={"state": text.state})
    return redirect(
        visit,
        visit.url(MESSAGES, TEXT.encode(text.id)),
        done="Text queued again. We check consent, sending hours and the frequency cap again.",
    )


async def show_number(finders: OriginFinders, visit: Visit) -> Response:
    """The page of a phone number: its conversation, its consent and its customer."""
    number_hash = read_hash(visit.references[0])
    async with visit.database.reading() as tx:
        messages = await read_conversation(tx, visit.organization_id, number_hash, limit=MESSAGES_SHOWN_MAX)
        subscription = await find_by_number_hash(tx, visit.organization_id, number_hash)
        if not messages and subscription is None:
            raise PageNotFound("There are no messages with this number.")
        origins = await find_origins(tx, visit.organization_id, finders, [message.text for message in messages])
        is_suppressed = bool(await find_suppressed(tx, visit.organization_id, [number_hash]))
        texting = await load_texting(tx, visit.organization_id)
        customer = None
        if subscription is not None and subscription.profile is not None:
            customer = await find_profile(tx, visit.organization_id, ById(subscription.profile.id))
    rows = [row for message in messages for row in (message.text, message.reply) if row is not None]
    numbers = [row.phone_number for row in rows if row.phone_number]
    state = None if subscription is None else subscription.state
    return render(
        visit,
        "inbox/number.html",
        messages=messages,
        origins=origins,
        is_truncated=len(messages) == MESSAGES_SHOWN_MAX,
        number=numbers[-1] if numbers else None if state is None else state.phone_number,
        number_hash=number_hash,
        consent=None if state is None else "DO_NOT_CONTACT" if state.is_erased else state.status.value,
        consent_url=None
        if subscription is None
        else visit.url("/consent/numbers", SUBSCRIPTION.encode(subscription.id)),
        customer=customer,
        is_suppressed=is_suppressed,
        last_reply=next((message.reply for message in reversed(messages) if message.reply is not None), None),
        texting=texting,
        shown=MessageView(visit),
        form=FormState(),
    )


def pages(*, origins: OriginFinders, attribution_card: TextCard) -> tuple[Page, ...]:
    """`origins` has the functions that find the journeys and campaigns that requested texts, by kind.
    `attribution_card` renders the purchases that are credited to a text. Both come from packages that import
    `texts`."""
    return (
        Page(path=MESSAGES, needs=Action.READ, handle=partial(show_messages, origins)),
        Page(path=f"{MESSAGES}.csv", needs=Action.READ, handle=export_messages, harm=Harm.EXPORTS),
        Page(path=f"{MESSAGES}/{{text}}", needs=Action.READ, handle=partial(show_text, origins, attribution_card)),
        Page(path=f"{MESSAGES}/{{text}}/resend", needs=Action.WRITE_TEXTS, handle=ask_to_resend),
        Form(path=f"{MESSAGES}/{{text}}/resend", needs=Action.WRITE_TEXTS, handle=send_again, harm=Harm.CHANGES),
        Page(path=f"{NUMBERS}/{{number}}", needs=Action.READ, handle=partial(show_number, origins)),
    )
