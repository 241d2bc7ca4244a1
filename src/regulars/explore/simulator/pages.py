"""Pages of the SMS simulator: a phone with the texts that were sent to a number, a form to reply as its owner, and the
effects of the last reply."""

from typing import Any, Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.consent.chain import hash_number
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.find import find_by_number_hash
from regulars.consent.phone import read_consent_number
from regulars.consent.subscription import Subscription
from regulars.explore.simulator.reply_trace import TraceStep, read_steps
from regulars.inbox.find import list_simulated_phones, read_conversation
from regulars.inbox.receive import BODY_CHARACTERS_MAX, IncomingMessage, receive_reply
from regulars.kit.db import Tx
from regulars.kit.ids import REPLY, ById, new_uuid
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile
from regulars.texts.find import find_suppressed
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.texts.model import ConversationItem
from regulars.texts.settings.store import Texting, load_texting
from regulars.web.access import Action
from regulars.web.errors import Conflict, PageNotFound
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/simulator"
TEMPLATE: Final = "explore/simulator.html"
PHONES_SHOWN: Final = 12
MESSAGES_SHOWN: Final = 40
HASH_BYTES: Final = 32
# The states of texts that the phone shows.
ON_THE_PHONE: Final = frozenset({"sent", "delivered"})
QUICK_REPLIES: Final = ("STOP", "START", "HELP", "Arrêtez de m'écrire", "À quelle heure ouvrez-vous ?")


class SimulatedPhone(NamedTuple):
    """One number's phone; `reference` is its path segment in the page's address."""

    reference: str
    number_hash: bytes
    number: str
    messages: list[ConversationItem]
    subscription: Subscription | None
    is_suppressed: bool
    customer: Profile | None
    steps: list[TraceStep]

    @property
    def status(self) -> str | None:
        if self.subscription is None:
            return None
        state = self.subscription.state
        return "DO_NOT_CONTACT" if state.is_erased else state.status.value

    @property
    def on_screen(self) -> list[ConversationItem]:
        return [item for item in self.messages if item.text is None or item.text.state in ON_THE_PHONE]

    @property
    def waiting(self) -> int:
        """The number of texts that are queued or being sent."""
        return sum(item.text is not None and item.text.state in {"queued", "sending"} for item in self.messages)


async def show_simulator(visit: Visit) -> Response:
    """The phone with the most recent message; with `q` in the address, the phone of that number."""
    search_text = visit.query.get("q", "").strip()
    form = FormState({"q": search_text}, again=_show)
    if not search_text:
        return await _show(visit, form)
    if not visit.sees_personal:
        raise form.refusal("q", "Your role cannot search for numbers; choose one from the list.")
    with form.refusing("q", InvalidPhoneNumber):
        return redirect(visit, visit.url(PATH, read_consent_number(search_text)))


async def _show(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.transaction() as tx:
        phones = await list_simulated_phones(tx, visit.organization_id, limit=PHONES_SHOWN)
    async with visit.database.reading() as tx:
        texting = await _load_texting(tx, visit)
        reference = next(iter([*visit.references, *(phone.number_hash.hex() for phone in phones)]), None)
        phone = None if reference is None else await _load_phone(tx, visit, reference, texting)
    values: dict[str, Any] = {
        "texting": texting,
        "phones": phones,
        "phone": phone,
        "quick_replies": QUICK_REPLIES,
        "is_live": texting.provider != "simulator",
    }
    return render_form(visit, TEMPLATE, form or FormState(), **values)


async def _load_phone(tx: Tx, visit: Visit, reference: str, texting: Texting) -> SimulatedPhone:
    number, number_hash = await _find_number(tx, visit, reference, texting)
    messages = await read_conversation(tx, visit.organization_id, number_hash, limit=MESSAGES_SHOWN)
    subscription = await find_by_number_hash(tx, visit.organization_id, number_hash)
    last_reply = next((item.reply for item in reversed(messages) if item.reply is not None), None)
    customer = None
    if subscription is not None and subscription.profile is not None:
        customer = await find_profile(tx, visit.organization_id, ById(subscription.profile.id))
    return SimulatedPhone(
        reference,
        number_hash,
        number,
        messages,
        subscription,
        bool(await find_suppressed(tx, visit.organization_id, [number_hash])),
        customer,
        [] if last_reply is None else await read_steps(tx, visit, last_reply, subscription),
    )


async def _find_number(tx: Tx, visit: Visit, reference: str, texting: Texting) -> tuple[str, bytes]:
    """Find a phone number by its hash or, for a user who may see numbers, by the number itself. An unknown number may
    send replies too."""
    if visit.sees_personal and reference.startswith("+"):
        try:
            number = read_consent_number(reference)
        except InvalidPhoneNumber as error:
            raise PageNotFound(error.detail) from None
        return number, hash_number(texting.secret, number)
    number_hash = _parse_hash(reference)
    messages = [] if number_hash is None else await read_conversation(tx, visit.organization_id, number_hash, limit=1)
    for item in messages:
        message = item.text or item.reply
        if message is not None and message.phone_number is not None and number_hash is not None:
            return message.phone_number, number_hash
    subscription = None if number_hash is None else await find_by_number_hash(tx, visit.organization_id, number_hash)
    if subscription is None or subscription.state.phone_number is None or number_hash is None:
        raise PageNotFound("The simulator has no phone with this number.")
    return subscription.state.phone_number, number_hash


def _parse_hash(reference: str) -> bytes | None:
    try:
        number_hash = bytes.fromhex(reference)
    except ValueError:
        return None
    return number_hash if len(number_hash) == HASH_BYTES else None


async def reply(visit: Visit) -> Response:
    """Process a reply as if an SMS provider had delivered it; refused while a real provider is connected."""
    form = FormState(visit.form, again=_show)
    body = form.value("text").strip()
    if not body:
        form.refuse("text", "Write a reply.")
    elif len(body) > BODY_CHARACTERS_MAX:
        form.refuse("text", f"At most {BODY_CHARACTERS_MAX} characters; this has {len(body)}.")
    form.check()
    async with visit.database.transaction() as tx:
        texting = await _load_texting(tx, visit)
        if texting.provider != "simulator":
            raise Conflict("Texts are sent through a real provider now, so the simulator accepts no replies.")
        number, number_hash = await _find_number(tx, visit, visit.references[0], texting)
        incoming = IncomingMessage(provider="simulator", provider_id=str(new_uuid()), phone_number=number, body=body)
        received = await receive_reply(tx, visit.organization_id, incoming, texting=texting)
        after = {"meaning": received.meaning.value}
        await record_act(tx, visit, "simulator.reply", REPLY.encode(received.id), after=after)
    await wait_for_texts_in_flight(visit.database, visit.organization_id, [number_hash])
    return redirect(visit, visit.url(PATH, number_hash.hex()) + "#talk")


async def _load_texting(tx: Tx, visit: Visit) -> Texting:
    """Load the SMS settings of the organization."""
    texting = await load_texting(tx, visit.organization_id)
    if texting is None:
        raise PageNotFound
    return texting


PAGES: Final = (
    Page(path=PATH, needs=Action.READ, handle=show_simulator),
    Page(path=f"{PATH}/{{number}}", needs=Action.READ, handle=_show),
    Form(path=f"{PATH}/{{number}}/reply", needs=Action.WRITE_TEXTS, handle=reply, harm=Harm.CHANGES),
)
