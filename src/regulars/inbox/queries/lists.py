"""The SQL that lists texts and replies by page, number or customer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, LiteralString, TypeVar
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.columns import fill, names_of
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Scan
from regulars.texts.model import LatestMessage, MessageFilter, MessageListItem, ReplyRow, TextRow

Row = TypeVar("Row", TextRow, ReplyRow)
OLDEST: Final = Keyset({"t.id": UUID})
NEWEST: Final = Keyset({"t.id": UUID}, is_descending=True)
_BETWEEN: Final[dict[str, LiteralString]] = {"since": "t.id >= %(since)s", "until": "t.id < %(until)s"}
# Few texts are in these states, and a partial index finds them. All other states are so frequent that a scan of the
# newest rows finds enough texts.
_STATES_INDEXED: Final = frozenset({"queued", "failed", "skipped", "unknown"})
_STATE: Final[dict[str, LiteralString]] = {"state": "t.state = %(state)s"}
_STATE_INDEXED: Final[dict[str, LiteralString]] = {
    "state": "t.state = %(state)s AND t.state IN ('queued', 'failed', 'skipped', 'unknown')"
}
# One page scans at most this many rows; then the user may load the next page.
ROWS_SCANNED_MAX: Final = 10_000
_TEXT_FILTERS: Final[dict[str, LiteralString]] = {
    **_BETWEEN,
    "reason": "substring(t.reason FROM '^[a-z_]+') = %(reason)s AND t.reason IS NOT NULL",
}
_REPLY_FILTERS: Final = {**_BETWEEN, "is_undecided": "t.decided IS NULL"}
# The innermost query reads rows with an index, by the filters that the index supports. All other filters then select a
# page of these rows, and only then are the customers of the page joined.
_LIST_ITEMS: Final = SQL(
    """
    SELECT t.id, t.is_received, t.at, t.number_hash, t.phone_number, t.profile_id, p.first_name, p.last_name,
           p.external_id, t.body, t.parts, t.origin_kind, t.state, t.reason, t.origin_id
    FROM (
        SELECT t.* FROM (
            SELECT t.id, t.number_hash, t.phone_number, t.profile_id, t.body, {columns}
            FROM {table}
            WHERE t.organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
            ORDER BY {ordered}
            LIMIT %(scan_limit)s
        ) AS t
        WHERE true {and_filters}
        ORDER BY {ordered}
        LIMIT %(limit)s
    ) AS t
    LEFT JOIN profiles AS p ON p.organization_id = %(organization_id)s AND p.id = t.profile_id
    ORDER BY {ordered}
    """
)
_TEXT_ITEM: Final = SQL(
    "false AS is_received, t.created_at AS at, t.parts, t.origin_kind, t.state, t.reason, t.origin_id"
)
_REPLY_ITEM: Final = SQL(
    "true AS is_received, t.received_at AS at, 0 AS parts, 'reply' AS origin_kind, t.meaning AS state,"
    " t.decided AS reason, NULL::uuid AS origin_id"
)


async def list_items(
    tx: Tx, organization_id: UUID, filters: MessageFilter, page: PageRequest, *, is_received: bool
) -> PageRows[MessageListItem]:
    """A page of texts, or of replies (`is_received`), newest first; a filter by state is only for texts."""
    is_indexed = filters.state in _STATES_INDEXED
    table, indexed = ("replies AS t", _REPLY_FILTERS) if is_received else ("texts AS t", _TEXT_FILTERS)
    if is_indexed and not is_received:
        indexed = {**indexed, **_STATE_INDEXED}
    return await NEWEST.fetch(
        tx,
        _LIST_ITEMS,
        page,
        {"organization_id": organization_id, **filters._asdict()},
        make=MessageListItem,
        columns=_REPLY_ITEM if is_received else _TEXT_ITEM,
        filters={} if is_received or is_indexed else _STATE,
        scan=Scan(table, ROWS_SCANNED_MAX, indexed),
    )


_LIST_OF_PERSON: Final[LiteralString] = """
    SELECT {columns} FROM {table}
    WHERE organization_id = %s AND (profile_id = %s OR number_hash = ANY (%s::bytea[])) AND id > %s
    ORDER BY id
    LIMIT %s
"""


async def list_texts_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Sequence[bytes], after: UUID, limit: int
) -> list[TextRow]:
    """Texts to the person or to one of their numbers, oldest first."""
    return await tx.fetch_all(
        TextRow,
        fill(_LIST_OF_PERSON, table="texts"),
        (organization_id, profile_id, list(number_hashes), after, limit),
    )


async def list_replies_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Sequence[bytes], after: UUID, limit: int
) -> list[ReplyRow]:
    """Replies of the person or from one of their numbers, oldest first."""
    return await tx.fetch_all(
        ReplyRow,
        fill(_LIST_OF_PERSON, table="replies"),
        (organization_id, profile_id, list(number_hashes), after, limit),
    )


async def list_last_simulated(tx: Tx, organization_id: UUID, *, limit: int) -> list[LatestMessage]:
    """The latest texts to the simulator's phones; a number may occur several times."""
    return await tx.fetch_all(
        LatestMessage,
        """
        SELECT t.number_hash, s.phone_number, s.sent_at, s.body, p.first_name, p.last_name
        FROM (
            SELECT id, text_id, phone_number, body, sent_at FROM simulated_texts
            WHERE organization_id = %(organization_id)s
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS s
        CROSS JOIN LATERAL (
            SELECT number_hash, profile_id FROM texts
            WHERE organization_id = %(organization_id)s AND id = s.text_id AND number_hash IS NOT NULL
            LIMIT 1
        ) AS t
        LEFT JOIN LATERAL (
            SELECT first_name, last_name FROM profiles
            WHERE organization_id = %(organization_id)s AND id = t.profile_id
            LIMIT 1
        ) AS p ON true
        ORDER BY s.id DESC
        """,
        {"organization_id": organization_id, "limit": limit},
    )


async def list_last_replies(tx: Tx, organization_id: UUID, *, limit: int) -> list[LatestMessage]:
    """The latest replies, from any provider."""
    return await tx.fetch_all(
        LatestMessage,
        """
        SELECT r.number_hash, r.phone_number, r.received_at, r.body, p.first_name, p.last_name
        FROM (
            SELECT id, number_hash, phone_number, received_at, body, profile_id FROM replies
            WHERE organization_id = %(organization_id)s
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS r
        LEFT JOIN LATERAL (
            SELECT first_name, last_name FROM profiles
            WHERE organization_id = %(organization_id)s AND id = r.profile_id
            LIMIT 1
        ) AS p ON true
        ORDER BY r.id DESC
        """,
        {"organization_id": organization_id, "limit": limit},
    )


_LIST_ROWS: Final = SQL(
    """
    SELECT {columns} FROM {table} AS t
    WHERE t.organization_id = %(organization_id)s {and_filters} {and_after_position}
    ORDER BY {ordered}
    LIMIT %(limit)s
    """
)
_ROW_FILTERS: Final[dict[str, LiteralString]] = {
    "number_hash": "t.number_hash = %(number_hash)s",
    "profile_id": "t.profile_id = %(profile_id)s",
    "undecided_only": "t.decided IS NULL",
}


async def list_rows(
    tx: Tx,
    table: LiteralString,
    row: Callable[..., Row],
    page: PageRequest,
    values: Mapping[str, Any],
    *,
    order: Keyset = NEWEST,
) -> PageRows[Row]:
    """Texts or replies; `values` has the organization and the values of filters, or None."""
    state = _STATE_INDEXED if values.get("state") in _STATES_INDEXED else _STATE
    filters = {name: text for name, text in {**_ROW_FILTERS, **state}.items() if name in values}
    columns = SQL(names_of(row, "t"))
    return await order.fetch(tx, _LIST_ROWS, page, values, make=row, filters=filters, table=SQL(table), columns=columns)
