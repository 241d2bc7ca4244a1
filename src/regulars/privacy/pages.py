"""The pages with which a user downloads all data of a customer, or erases the customer."""

from functools import partial
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.consent.find import list_by_profile
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, ById, read_reference
from regulars.privacy.erase import ErasedProfile, erase_profiles
from regulars.privacy.erasure_log import ErasureLog
from regulars.privacy.export import export_person
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile
from regulars.sales.tickets import list_customer_tickets
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.download import Download
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/customers"


async def export_customer(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        profile = await _find_customer(tx, visit)
        await record_act(tx, visit, "customer.export", PROFILE.encode(profile.id))
    pieces = export_person(visit.database, visit.organization_id, profile, secret=visit.organization.secret)
    return Download(pieces, filename=f"{PROFILE.encode(profile.id)}.json", media_type="application/json")


async def ask_to_erase(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        profile = await _find_customer(tx, visit)
        values = await _describe_erasure(tx, visit, profile)
    return render_form(visit, "privacy/erase.html", form or FormState(), **values)


async def erase_customer(visit: Visit, *, log: ErasureLog) -> Response:
    form = FormState(visit.form, again=ask_to_erase)
    async with visit.database.reading() as tx:
        profile = await _find_customer(tx, visit)
    if form.value("confirm").strip() != profile.external_id:
        raise form.refusal("confirm", f"Type {profile.external_id} exactly; nothing was erased.")
    async with visit.database.transaction() as tx:
        [outcome] = await erase_profiles(
            tx, visit.organization_id, [ById(profile.id)], secret=visit.organization.secret, log=log
        )
        await record_act(tx, visit, "customer.erase", PROFILE.encode(profile.id))
    # An erasure withdraws consent, so the response waits until no text to the customer is being sent.
    numbers = outcome.number_hashes if isinstance(outcome, ErasedProfile) else ()
    await wait_for_texts_in_flight(visit.database, visit.organization_id, numbers)
    done = "The customer is erased. Their tickets stay without a name, and their numbers get no more texts."
    return redirect(visit, visit.url(PATH), done=done)


async def _describe_erasure(tx: Tx, visit: Visit, profile: Profile) -> dict[str, Any]:
    """The values of the confirmation page, which says what the erasure deletes and what remains."""
    tickets = await list_customer_tickets(tx, visit.organization_id, profile.id)
    subscriptions = await list_by_profile(tx, visit.organization_id, profile.id, secret=visit.organization.secret)
    return {
        "profile": profile,
        "name": mask.name(visit, profile.first_name, profile.last_name) or profile.external_id,
        "customer_url": visit.url(PATH, PROFILE.encode(profile.id)),
        "purchases": sum(ticket.type == "PURCHASE" for ticket in tickets),
        "returns": sum(ticket.type != "PURCHASE" for ticket in tickets),
        "numbers": [
            subscription.state.phone_number for subscription in subscriptions if subscription.state.phone_number
        ],
    }


async def _find_customer(tx: Tx, visit: Visit) -> Profile:
    profile = await find_profile(tx, visit.organization_id, read_reference(PROFILE, visit.references[0]))
    if profile is None:
        raise PageNotFound("No customer of this organization has this id; they may have been erased.")
    return profile


def pages(log: ErasureLog) -> tuple[Page, ...]:
    erase = partial(erase_customer, log=log)
    return (
        Page(
            path=f"{PATH}/{{customer}}/export.json",
            needs=Action.SEE_PERSONAL,
            handle=export_customer,
            harm=Harm.EXPORTS,
        ),
        Page(path=f"{PATH}/{{customer}}/erase", needs=Action.ERASE_CUSTOMERS, handle=ask_to_erase),
        Form(path=f"{PATH}/{{customer}}/erase", needs=Action.ERASE_CUSTOMERS, handle=erase, harm=Harm.ERASES),
    )
