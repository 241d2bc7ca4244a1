"""The pages of sent and received messages: the list, one text, sending it again, and the conversation with a number."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.consent.chain import hash_number
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.find import find_by_number_hash
from regulars.consent.phone import read_consent_number
from regulars.inbox.find import count_undecided, list_messages, read_conversation
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, REPLY, SUBSCRIPTION, TEXT, ById, first_id_at
from regulars.lists.columns import HARMLESS, Column, Columns, Head, PartlyMasked, Place
from regulars.lists.masking import hide_digits
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
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import Filter, ListView, read_view
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

_PARTS: Final = Head("SMS parts", "is-num drop-2", 4, is_plain=True)


def _hide_details(reason: str) -> str:
    """The reason without what a provider answered, which stands after a colon."""
    return reason.partition(":")[0]


COLUMNS: Final = Columns[MessageListItem](
    Column("id", lambda it: (REPLY if it.is_received else TEXT).encode(it.id), HARMLESS, places=Place.FILE),
    Column("direction", lambda it: "received" if it.is_received else "sent", HARMLESS),
    Column("at", lambda it: it.at, HARMLESS, Head("Time", "nowrap drop-3", 3)),
    Column("number", lambda it: PartlyMasked(it.phone_number, hide_digits), head=Head("Number", "clip", 1)),
    Column("customer", lambda it: PROFILE.encode_or_none(it.profile_id), HARMLESS),
    Column("state", lambda it: it.state, HARMLESS, Head("State", "", 6)),
    Column("reason", lambda it: PartlyMasked(it.reason, _hide_details), head=Head("Reason", "nowrap drop-2", 5)),
    Column("parts", lambda it: None if it.is_received else it.parts, HARMLESS, _PARTS),
    Column("origin", lambda it: it.origin_kind, HARMLESS),
    Column("text", lambda it: it.body, head=Head("Text", "is-wide clip drop-4", 2)),
)
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


async def _open_messages(finders: OriginFinders, _tx: Tx, visit: Visit) -> OpenedList[MessageListItem]:
    view = read_view(visit, "messages", MESSAGES, filters=filters(visit))
    text, wanted = view.value("q"), message_filter_of(visit, view)

    async def load(tx: Tx, rows: Sequence[MessageListItem]) -> Mapping[str, Any]:
        return {
            "texting": await load_texting(tx, visit.organization_id),
            "undecided": await count_undecided(tx, visit.organization_id, limit=UNDECIDED_COUNTED_MAX),
            "origins": await find_origins(tx, visit.organization_id, finders, rows),
        }

    async def find_exactly(_tx: Tx) -> str | None:
        return _url_of_exact_match(visit, text)

    return OpenedList(
        view=view,
        source=view.by_key(lambda tx, page: list_messages(tx, visit.organization_id, wanted, page)),
        values={"shown": MessageView(visit)},
        load=load,
        find_exactly=find_exactly if text else None,
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
    messages = ListPages(
        "inbox/messages.html",
        COLUMNS,
        partial(_open_messages, origins),
        act="messages.export",
        file_name="messages.csv",
    )
    return (
        *messages.pages(MESSAGES, needs=Action.READ),
        Page(path=f"{MESSAGES}/{{text}}", needs=Action.READ, handle=partial(show_text, origins, attribution_card)),
        Page(path=f"{MESSAGES}/{{text}}/resend", needs=Action.WRITE_TEXTS, handle=ask_to_resend),
        Form(path=f"{MESSAGES}/{{text}}/resend", needs=Action.WRITE_TEXTS, handle=send_again, harm=Harm.CHANGES),
        Page(path=f"{NUMBERS}/{{number}}", needs=Action.READ, handle=partial(show_number, origins)),
    )
