"""The page of one customer, with timeline, consent and attributes; and the routes of all pages about customers."""

from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from starlette.responses import Response

from regulars.campaigns.recipients import list_recipients_of_person
from regulars.catalog.entries import find_types
from regulars.catalog.model import TYPE_LABELS, AttributeType, Catalog, infer_type, interpret, label_key
from regulars.columns.client import Analysis
from regulars.consent.chain import hash_number
from regulars.consent.find import list_by_profile
from regulars.consent.history import list_last_entries
from regulars.consent.model import LedgerEntry, Status
from regulars.consent.subscription import Subscription
from regulars.explore.customers.listing import PATH, CustomerList, status_of
from regulars.explore.customers.timeline import KINDS, Timeline, TimelineEntry, by_day, entries_of, merge
from regulars.explore.number_view import ENTRIES_SHOWN, NumberView, read_local_time, read_number
from regulars.inbox.find import list_replies, list_texts
from regulars.journeys.runs.lists import list_runs_of_customer, name_journeys
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, SEGMENT, SUBSCRIPTION, ById, read_reference
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile
from regulars.sales.purchase_history import History, read_history
from regulars.sales.tickets import CUSTOMER_TICKETS_MAX, list_customer_tickets
from regulars.segments.explain import find_segments_of
from regulars.segments.saved.manage import list_segments
from regulars.stores.find import name_stores
from regulars.texts.labels import ORIGINS, label_reason, label_state, reason_detail
from regulars.texts.model import ReplyRow
from regulars.texts.text_origins import OriginFinders, TextOrigin, find_origins
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.render import render
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

TEXTS_SHOWN_MAX: Final = 200
RUNS_SHOWN_MAX: Final = 200
RECIPIENTS_SHOWN_MAX: Final = 200
NUMBERS_SEARCHED_MAX: Final = 5
# The types that only a user assigns, each with the type that its values seem to have.
_APPARENT_TYPES: Final = {AttributeType.CURRENCY: AttributeType.NUMBER, AttributeType.ENUM: AttributeType.TEXT}


class AttributeRow(NamedTuple):
    """An attribute of the customer; `type` is empty if the value shows it."""

    key: str
    label: str
    type: str
    value: str
    is_parsable: bool


class SegmentMembership(NamedTuple):
    """A segment, and whether the customer is in it."""

    id: str
    name: str
    is_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerView:
    profile: Profile
    history: History
    timeline: Timeline
    subscriptions: list[Subscription]
    number: NumberView | None
    status: str | None
    attributes: list[AttributeRow]
    stores: dict[UUID, str]
    has_more_tickets: bool
    segments: list[SegmentMembership]
    journeys: dict[UUID, str]
    # The journeys and campaigns that requested the texts of the timeline.
    origins: dict[UUID, TextOrigin]


async def find_customer(tx: Tx, visit: Visit) -> Profile:
    """The customer whose canonical or external id is in the page's address, in this organization."""
    reference = read_reference(PROFILE, visit.references[0])
    # An external id identifies a person: a role that may not see external ids may not probe them either.
    is_allowed = visit.sees_personal or isinstance(reference, ById)
    profile = await find_profile(tx, visit.organization_id, reference) if is_allowed else None
    if profile is None:
        raise PageNotFound("No customer of this organization has this id; they may have been erased.")
    return profile


async def show_customer(finders: OriginFinders, visit: Visit) -> Response:
    kind = visit.query.get("kind", "all")
    kind = kind if kind in KINDS else "all"
    async with visit.database.reading() as tx:
        profile = await find_customer(tx, visit)
        view = await _load_view(tx, visit, profile, finders, kind=kind)
    return render(
        visit,
        "explore/customer.html",
        customer=view,
        days=by_day(view.timeline.entries, visit.format),
        kind=kind,
        kinds=KINDS,
        canonical_id=PROFILE.encode(profile.id),
        here=visit.url(PATH, PROFILE.encode(profile.id)),
        name=mask.name(visit, profile.first_name, profile.last_name),
        number_ids={number.id: SUBSCRIPTION.encode(number.id) for number in view.subscriptions},
        label_state=label_state,
        text_origins=ORIGINS,
        text_reason=partial(_describe_reason, visit),
    )


def _describe_reason(visit: Visit, reason: str) -> str:
    """The label of a reason, and the provider's message, which is masked because it may contain the number."""
    label, detail = label_reason(reason), mask.text(visit, reason_detail(reason))
    return ": ".join(part for part in (label and label.name, detail) if part)


async def _load_view(tx: Tx, visit: Visit, profile: Profile, finders: OriginFinders, *, kind: str) -> CustomerView:
    tickets = await list_customer_tickets(tx, visit.organization_id, profile.id)
    subscriptions = await list_by_profile(tx, visit.organization_id, profile.id, secret=visit.organization.secret)
    chosen = _choose(subscriptions, visit.query.get("number"))
    number = None
    if chosen is not None:
        number = await read_number(tx, visit, chosen, checked_at=read_local_time(visit, visit.query.get("at")))
    ledger_entries = await _load_ledger_entries(tx, visit, subscriptions, number)
    other_entries = await _load_other_entries(tx, visit, profile, subscriptions)
    timeline = merge(tickets, ledger_entries, other_entries, kind=kind, before=visit.query.get("before"))
    store_ids = {entry.ticket.store_id for entry in timeline.entries if entry.ticket is not None}
    status = None if chosen is None else chosen.state.status.value
    return CustomerView(
        profile=profile,
        history=read_history(tickets, now=visit.now, zone=visit.format.zone),
        timeline=timeline,
        subscriptions=subscriptions,
        number=number,
        status=status_of(profile, status),
        attributes=await _load_attributes(tx, visit, profile),
        stores=await name_stores(tx, visit.organization_id, store_ids),
        has_more_tickets=len(tickets) == CUSTOMER_TICKETS_MAX,
        segments=await _load_memberships(tx, visit, profile) if visit.may(Action.EDIT_SEGMENTS) else [],
        journeys=await name_journeys(
            tx, visit.organization_id, {entry.run.journey_id for entry in timeline.entries if entry.run is not None}
        ),
        origins=await find_origins(tx, visit.organization_id, finders, [entry.text for entry in timeline.entries]),
    )


async def _load_other_entries(
    tx: Tx, visit: Visit, profile: Profile, subscriptions: list[Subscription]
) -> list[TimelineEntry]:
    """The texts to the customer, their replies, and their journeys and campaigns: the newest of each."""
    texts = await list_texts(
        tx, visit.organization_id, secret=visit.organization.secret, profile_id=profile.id, limit=TEXTS_SHOWN_MAX
    )
    runs = await list_runs_of_customer(tx, visit.organization_id, profile.id, limit=RUNS_SHOWN_MAX)
    replies: list[ReplyRow] = []
    for subscription in subscriptions[:NUMBERS_SEARCHED_MAX]:
        if subscription.state.phone_number:
            number_hash = hash_number(visit.organization.secret, subscription.state.phone_number)
            replies += await list_replies(tx, visit.organization_id, number_hash=number_hash, limit=TEXTS_SHOWN_MAX)
    recipients = await list_recipients_of_person(tx, visit.organization_id, profile.id, limit=RECIPIENTS_SHOWN_MAX)
    return entries_of(texts, replies, runs, recipients)


def _choose(subscriptions: list[Subscription], requested_id: str | None) -> Subscription | None:
    """The subscription with the requested id; else the one that texts go to: subscribed, with the latest consent."""
    if not subscriptions:
        return None
    identifier = SUBSCRIPTION.decode(requested_id or "")
    requested = [subscription for subscription in subscriptions if subscription.id == identifier]
    return max(
        requested or subscriptions,
        key=lambda each: (each.state.status is Status.SUBSCRIBED, each.state.consented_at or each.created_at),
    )


async def _load_ledger_entries(
    tx: Tx, visit: Visit, subscriptions: list[Subscription], number: NumberView | None
) -> list[LedgerEntry]:
    """The ledger entries of all numbers; those of the selected number are loaded already."""
    entries: list[LedgerEntry] = []
    for subscription in subscriptions:
        if number is not None and subscription.id == number.subscription.id:
            entries += number.entries
        else:
            entries += await list_last_entries(tx, visit.organization_id, subscription.id, limit=ENTRIES_SHOWN)
    return [entry for entry in entries if entry.outcome != "already_subscribed"]


async def _load_memberships(tx: Tx, visit: Visit, profile: Profile) -> list[SegmentMembership]:
    """All segments, with those that the customer is in first."""
    rows = await list_segments(tx, visit.organization_id)
    names = {SEGMENT.encode(row.id): row.name for row in rows}
    ids_with_customer = await find_segments_of(tx, visit.organization_id, names.keys(), profile.id)
    memberships = [
        SegmentMembership(segment_id, name, segment_id in ids_with_customer) for segment_id, name in names.items()
    ]
    return sorted(memberships, key=lambda membership: (not membership.is_in, membership.name))


async def _load_attributes(tx: Tx, visit: Visit, profile: Profile) -> list[AttributeRow]:
    declared = await find_types(tx, visit.organization_id, Catalog.ATTRIBUTES, profile.attributes)
    rows = []
    for key, value in sorted(profile.attributes.items()):
        kind, allowed_values = declared.get(key, (AttributeType.TEXT, ()))
        is_parsable = interpret(kind, value, allowed_values=allowed_values) is not None
        # A valid boolean or enum value does not identify a person.
        is_plain = is_parsable and kind in {AttributeType.BOOLEAN, AttributeType.ENUM}
        shown = value if is_plain else mask.text(visit, value) or ""
        # The type helps if the value is hidden, does not fit, or looks like one of another type.
        needs_type = shown != value or not is_parsable or infer_type(value) is not _APPARENT_TYPES.get(kind, kind)
        rows.append(AttributeRow(key, label_key(key), TYPE_LABELS[kind] if needs_type else "", shown, is_parsable))
    return rows


def pages(analysis: Analysis, *, origins: OriginFinders) -> tuple[Page, ...]:
    """`origins` has the functions that find the journeys and campaigns that requested texts, by kind."""
    customers = CustomerList(analysis)
    return (
        Page(path=PATH, needs=Action.READ, handle=customers.show),
        Page(path=f"{PATH}.csv", needs=Action.READ, handle=customers.export, harm=Harm.EXPORTS),
        Form(path=f"{PATH}/prepare", needs=Action.EDIT_SEGMENTS, handle=customers.prepare, harm=Harm.CHANGES),
        Page(path=f"{PATH}/{{customer}}", needs=Action.READ, handle=partial(show_customer, origins)),
    )
