"""The page on which a team member verifies their own phone number for test texts: request a code, and enter it."""

from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.kit.ids import TEXT
from regulars.texts.errors import SettingRefused
from regulars.texts.pages.message_view import load_texting_of
from regulars.texts.pages.settings import PATH
from regulars.texts.team_numbers import TESTS_MAX, find_team_number, request_code, verify_code
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

NUMBER: Final = f"{PATH}/number"


async def show(visit: Visit, form: FormState | None = None) -> Response:
    """Show the number of the team member, with a form that may be refused."""
    async with visit.database.reading() as tx:
        texting = await load_texting_of(tx, visit)
        number = await find_team_number(tx, visit.user.id, texting=texting)
    values: dict[str, Any] = {"texting": texting, "number": number, "tests_max": TESTS_MAX}
    return render_form(visit, "texts/team_number.html", form or FormState(), **values)


async def send_code(visit: Visit) -> Response:
    form = FormState(visit.form, again=show)
    with form.refusing("number", SettingRefused, InvalidPhoneNumber):
        number = read_consent_number(form.value("number").strip())
        async with visit.database.transaction() as tx:
            texting = await load_texting_of(tx, visit, is_to_change=True)
            placed = await request_code(tx, visit.user.id, number, texting=texting)
            await record_act(tx, visit, "text.test_code", TEXT.encode(placed.id))
    return redirect(visit, visit.url(NUMBER), done="The code is on its way. It is valid for ten minutes.")


async def verify(visit: Visit) -> Response:
    form = FormState(visit.form, again=show)
    with form.refusing("code", SettingRefused):
        async with visit.database.transaction() as tx:
            texting = await load_texting_of(tx, visit, is_to_change=True)
            is_right = await verify_code(tx, visit.user.id, form.value("code"), texting=texting)
            if is_right:
                await record_act(tx, visit, "text.test_number", visit.user.email)
    if not is_right:
        raise form.refusal("code", "This code is wrong.")
    return redirect(visit, visit.url(NUMBER), done="Your number is verified.")


PAGES: Final = (
    Page(path=NUMBER, needs=Action.WRITE_TEXTS, handle=show),
    Form(path=NUMBER, needs=Action.WRITE_TEXTS, handle=send_code, harm=Harm.CHANGES),
    Form(path=f"{NUMBER}/code", needs=Action.WRITE_TEXTS, handle=verify, harm=Harm.CHANGES),
)
