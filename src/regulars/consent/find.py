"""Find and list subscriptions: the consent state of phone numbers, by id, number, customer or filter."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.consent import chain, queries
from regulars.consent.model import Status
from regulars.consent.phone import read_if_number
from regulars.consent.queries import SubscriptionRow
from regulars.consent.subscription import Subscription, make_subscription
from regulars.kit.changes import ChangePosition
from regulars.kit.db import Tx
from regulars.kit.ids import SUBSCRIPTION
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Scan, join_filters, reading_in_index_order

# If a filter matches few rows, one page scans at most this many rows; then the user may load the next page.
ROWS_SCANNED_MAX: Final = 20_000
# How many numbers of one customer are listed.
NUMBERS_MAX: Final = 20
# The filter value for numbers of erased people: they are withdrawn, and only a keyed hash of each is stored.
DO_NOT_CONTACT: Final = "DO_NOT_CONTACT"
_ROW_FILTERS: Final = {
    "number_hash": "subscriptions.number_hash = %(number_hash)s",
    "profile_id": "subscriptions.profile_id = %(profile_id)s",
    # An expression, because PostgreSQL might read all rows of a status instead of the few of a number or customer.
    "status": "(subscriptions.status || '') = %(status)s",
    "after": "subscriptions.id > %(after)s",
    # Changes after the position of `since` and before its horizon.
    "horizon": "(subscriptions.updated_at, subscriptions.id) > (%(time)s, %(id)s)"
    " AND subscriptions.updated_at < %(horizon)s",
}
_BY_CHANGE: Final[LiteralString] = "subscriptions.updated_at, subscriptions.id"
_BY_CHANGE_OF_STATUS: Final[LiteralString] = "subscriptions.status, " + _BY_CHANGE
_BY_STATUS: Final[LiteralString] = "subscriptions.status, subscriptions.id"
_FIRST, _LAST = UUID(int=0), UUID(int=(1 << 128) - 1)
_ANY: Final = SQL("")
# Within a row, because PostgreSQL would treat a status in `=` as constant, and might read all ids and filter them.
_OF_STATUS: Final = SQL(
    "AND (subscriptions.status, subscriptions.id) > (%(of_status)s, %(first)s)"
    " AND (subscriptions.status, subscriptions.id) < (%(of_status)s, %(last)s)"
)
_CHANGES_OF_STATUS: Final = SQL(
    "AND (subscriptions.status, subscriptions.updated_at, subscriptions.id) > (%(of_status)s, %(time)s, %(id)s)"
    " AND (subscriptions.status, subscriptions.updated_at) < (%(of_status)s, %(until)s)"
)


async def find_subscription(tx: Tx, organization_id: UUID, subscription_id: UUID) -> Subscription | None:
    row = await queries.find_subscription(tx, organization_id, subscription_id)
    return None if row is None else subscription_from_row(row)


async def list_subscriptions(
    tx: Tx,
    organization_id: UUID,
    *,
    secret: bytes,
    phone_number: str | None = None,
    profile_id: UUID | None = None,
    status: Status | None = None,
    after: UUID | None = None,
    since: ChangePosition | None = None,
    limit: int,
) -> list[Subscription]:
    """Subscriptions that pass the filters, after the id `after` in the order of their creation, or after the position
    `since` in the order of their last change. A number is found by its hash, even after the number was erased."""
    values: dict[str, Any] = {
        **({"horizon": None} if since is None else since._asdict()),
        "organization_id": organization_id,
        "number_hash": None if phone_number is None else chain.hash_number(secret, phone_number),
        "profile_id": profile_id,
        "status": None if status is None else status.value,
        "after": after,
        "limit": limit,
    }
    order: LiteralString = "subscriptions.id" if since is None else _BY_CHANGE
    if phone_number is not None or profile_id is not None:
        # Few subscriptions, which are sorted.
        return await _select(tx, values, order=order)
    async with reading_in_index_order(tx, is_whole=True):
        if status is None:
            return await _select(tx, values, order=order)
        values |= {"status": None, "of_status": status.value}
        if since is not None:
            return await _select(
                tx,
                {**values, "horizon": None, "until": since.horizon},
                order=_BY_CHANGE_OF_STATUS,
                of=_CHANGES_OF_STATUS,
            )
        values |= {"after": None, "first": after or _FIRST, "last": _LAST}
        return await _select(tx, values, order=_BY_STATUS, of=_OF_STATUS)


async def _select(tx: Tx, values: Mapping[str, Any], *, order: LiteralString, of: SQL = _ANY) -> list[Subscription]:
    rows = await queries.select_subscriptions(
        tx,
        SQL("subscriptions.organization_id = %(organization_id)s {} {}").format(of, join_filters(values, _ROW_FILTERS)),
        values,
        order=order,
    )
    return [subscription_from_row(row) for row in rows]


async def find_by_number_hash(tx: Tx, organization_id: UUID, number_hash: bytes) -> Subscription | None:
    """The subscription of the number with this hash."""
    rows = await queries.select_subscriptions(
        tx,
        SQL("subscriptions.organization_id = %(organization_id)s AND subscriptions.number_hash = %(number_hash)s"),
        {"organization_id": organization_id, "number_hash": number_hash, "limit": 1},
    )
    return subscription_from_row(rows[0]) if rows else None


def subscription_from_row(row: SubscriptionRow) -> Subscription:
    state = row.ledger_head.state
    if state is None:
        raise AssertionError("every committed subscription has a state")
    by_id = {state.profile_id: row.profile_external_id, state.store_id: row.store_external_id}
    external_ids = {key: name for key, name in by_id.items() if key is not None and name is not None}
    return make_subscription(row.ledger_head, state, external_ids)


async def search_subscription(
    tx: Tx, organization_id: UUID, text: str, *, secret: bytes, sees_personal: bool
) -> Subscription | None:
    """The subscription with this id or phone number. A user who may not see personal data cannot search by number,
    because a result would reveal that the number is a customer's."""
    identifier = SUBSCRIPTION.decode(text)
    if identifier is not None:
        return await find_subscription(tx, organization_id, identifier)
    if not sees_personal:
        return None
    number = read_if_number(text)
    if number is None:
        return None
    return await find_by_number_hash(tx, organization_id, chain.hash_number(secret, number))


async def list_by_profile(tx: Tx, organization_id: UUID, profile_id: UUID, *, secret: bytes) -> list[Subscription]:
    """The subscriptions of the numbers that are linked to a customer."""
    return await list_subscriptions(tx, organization_id, secret=secret, profile_id=profile_id, limit=NUMBERS_MAX)


class SubscriptionItem(NamedTuple):
    """A subscription in the list of a page, with the name of its customer."""

    id: UUID
    phone_number: str | None
    status: str
    consent_source: str | None
    consented_at: datetime | None
    unsubscribed_at: datetime | None
    has_terms: bool
    profile_id: UUID | None
    profile_external_id: str | None
    first_name: str | None
    last_name: str | None


_NEWEST_FIRST: Final = Keyset({"s.id": UUID}, is_descending=True)
_INDEXED_FILTERS: Final = {"status": "s.status = %(status)s"}
_FILTERS: Final = {
    "source": "s.consent_source = %(source)s",
    "is_weak": "s.status = 'SUBSCRIBED' AND s.terms_version IS NULL AND s.source_text IS NULL",
    "is_erased": "(s.phone_number IS NULL) = %(is_erased)s",
}


_LIST_NEWEST: Final = """
SELECT s.id, s.phone_number, s.status, s.consent_source, s.consented_at,
       CASE WHEN s.status = 'UNSUBSCRIBED' THEN s.latest_opt_out_at END, s.terms_version IS NOT NULL,
       p.id, p.external_id, p.first_name, p.last_name
FROM (
    SELECT s.id, s.phone_number, s.status, s.consent_source, s.consented_at, s.latest_opt_out_at,
           s.terms_version, s.source_text, s.profile_id
    FROM subscriptions AS s
    WHERE s.organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
    ORDER BY {ordered}
    LIMIT %(scan_limit)s
) AS s
LEFT JOIN LATERAL (
    SELECT id, external_id, first_name, last_name FROM profiles
    WHERE organization_id = %(organization_id)s AND id = s.profile_id
    LIMIT 1
) AS p ON true
WHERE true {and_filters}
ORDER BY {ordered}
LIMIT %(limit)s
"""


async def list_newest(
    tx: Tx,
    organization_id: UUID,
    page: PageRequest,
    *,
    status: str | None = None,
    source: str | None = None,
    is_weak: bool = False,
) -> PageRows[SubscriptionItem]:
    """Subscriptions, newest first, from a limited number of scanned rows.

    `status` is a status of subscriptions, or `DO_NOT_CONTACT`. The number of an erased person is listed under
    `DO_NOT_CONTACT` and not under `UNSUBSCRIBED`. `is_weak` lists only consents without terms and source text.
    """
    is_erased = None if status is None or status == Status.SUBSCRIBED else status == DO_NOT_CONTACT
    return await _NEWEST_FIRST.fetch(
        tx,
        _LIST_NEWEST,
        page,
        {
            "organization_id": organization_id,
            "status": Status.UNSUBSCRIBED.value if is_erased else status,
            "source": source,
            "is_weak": is_weak or None,
            "is_erased": is_erased,
        },
        make=SubscriptionItem,
        filters=_FILTERS,
        scan=Scan("subscriptions AS s", ROWS_SCANNED_MAX, _INDEXED_FILTERS),
    )


class ConsentStatus(NamedTuple):
    """The consent status of a customer, and the phone number that decides the status: None if it was erased."""

    status: str
    phone_number: str | None


async def find_consent_statuses(tx: Tx, organization_id: UUID, profile_ids: list[UUID]) -> dict[UUID, ConsentStatus]:
    """SUBSCRIBED if any number of the customer is, else UNSUBSCRIBED. A customer without numbers is absent."""
    if not profile_ids:
        return {}
    rows = await tx.fetch(
        """
        SELECT wanted.profile_id, s.status, s.phone_number
        FROM unnest(%(profile_ids)s::uuid[]) AS wanted (profile_id)
        CROSS JOIN LATERAL (
            SELECT status, phone_number FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = wanted.profile_id
            ORDER BY id
            LIMIT 20
        ) AS s
        """,
        {"organization_id": organization_id, "profile_ids": profile_ids},
    )
    statuses: dict[UUID, ConsentStatus] = {}
    for profile_id, status, phone_number in rows:
        # 'SUBSCRIBED' sorts before 'UNSUBSCRIBED'.
        if profile_id not in statuses or status < statuses[profile_id].status:
            statuses[profile_id] = ConsentStatus(status, phone_number)
    return statuses
