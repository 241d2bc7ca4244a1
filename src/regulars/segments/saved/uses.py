"""Records and lists which segments, journeys and campaigns use a segment. A segment in use cannot be deleted."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.conditions.tree import Group
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.saved import queries
from regulars.segments.saved.manage import KIND, find_names
from regulars.segments.saved.model import SegmentRow, UseRow

SEGMENT_ROWS_MAX = 100


@dataclass(frozen=True, slots=True)
class Use:
    """An object that uses a segment: its name, its URL below the organization, and what a change of the segment does to
    the object (`effect`)."""

    label: str
    path: str
    kind: str
    state: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveUser:
    """A live journey or a scheduled campaign that uses a segment. `match` are the conditions of the customers named
    `customers`, and `at_branch` the customers who are in the journey and whose next branch checks the segment; None if
    too many customers are in it to read them for a page."""

    use: Use
    match: Group
    customers: str
    at_branch: frozenset[UUID] | None = frozenset()


# Finds those of some journeys or campaigns that are live or scheduled; the ids name the segment that changes and the
# segments that refer to it. Like `DescribeUses`, the functions come from the packages that use segments.
FindActiveUsers = Callable[[Tx, UUID, Collection[UUID], frozenset[str]], Awaitable[list[ActiveUser]]]


# Describes objects of one kind, such as journeys, by id. The functions come from the packages that use segments, which
# this package must not import.
DescribeUses = Callable[[Tx, UUID, Collection[UUID]], Awaitable[Mapping[UUID, Use]]]


async def register_uses(
    tx: Tx, organization_id: UUID, segment_ids: Collection[UUID], *, kind: str, used_by_id: UUID
) -> None:
    """Record that the journey or campaign `used_by_id` uses exactly these segments.

    The lock prevents that a segment is deleted between the check and the insert.
    """
    await queries.lock_segments(tx, organization_id)
    await queries.delete_uses(tx, organization_id, kind=kind, used_by_id=used_by_id)
    existing = [row[0] for row in await queries.find_current(tx, organization_id, segment_ids)] if segment_ids else []
    if existing:
        await queries.insert_uses(tx, organization_id, existing, kind=kind, used_by_id=used_by_id)


async def find_segments_by_key(tx: Tx, organization_id: UUID, *, catalog: str, key: str) -> list[SegmentRow]:
    """The segments whose conditions read a key of a catalog: an attribute or a product property."""
    if "\0" in key:
        return []
    return await tx.fetch_all(
        SegmentRow,
        """
        SELECT segments.id, segments.name, segments.version, segments.created_at, segments.updated_at
        FROM segment_keys
        JOIN segments ON segments.organization_id = %(organization_id)s AND segments.id = segment_keys.segment_id
        WHERE segment_keys.organization_id = %(organization_id)s AND segment_keys.catalog = %(catalog)s
          AND segment_keys.key = %(key)s
        ORDER BY segments.name, segments.id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "catalog": catalog, "key": key, "limit": SEGMENT_ROWS_MAX},
    )


PATH: Final = "/segments"


async def describe_segments(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Use]:
    names = await find_names(tx, organization_id, ids)
    effect = "Its customers change together with this segment."
    return {
        identifier: Use(name, f"{PATH}/{SEGMENT.encode(identifier)}", KIND, effect=effect)
        for identifier, name in names.items()
    }


async def list_uses(
    tx: Tx, organization_id: UUID, segment_ids: Collection[UUID], describe_uses: Mapping[str, DescribeUses]
) -> dict[UUID, Sequence[Use]]:
    """List the objects that use each segment; `describe_uses` has the function for each kind of object."""
    rows = await queries.find_uses(tx, organization_id, segment_ids) if segment_ids else []
    described: dict[tuple[str, UUID], Use] = {}
    for kind, describe_users in describe_uses.items():
        ids = {row.id for row in rows if row.kind == kind}
        if ids:
            described |= {
                (kind, used_by_id): use for used_by_id, use in (await describe_users(tx, organization_id, ids)).items()
            }
    uses: dict[UUID, list[Use]] = {segment_id: [] for segment_id in segment_ids}
    for row in rows:
        uses[row.segment_id].append(described.get((row.kind, row.id), Use(f"A {row.kind}", "", row.kind)))
    return dict(uses)


async def find_active_users(
    tx: Tx, organization_id: UUID, segment_id: UUID, find_users: Mapping[str, FindActiveUsers]
) -> tuple[list[ActiveUser], frozenset[str]]:
    """The live journeys and scheduled campaigns that use a segment, also through other segments; and the ids of the
    segment and of those segments."""
    segment_ids, new_ids, rows = {segment_id}, {segment_id}, list[UseRow]()
    while new_ids:
        found = await queries.find_uses(tx, organization_id, new_ids)
        rows += found
        new_ids = {row.id for row in found if row.kind == KIND} - segment_ids
        segment_ids |= new_ids
    canonical_ids = frozenset(SEGMENT.encode(identifier) for identifier in segment_ids)
    users: list[ActiveUser] = []
    for kind, find in find_users.items():
        if used_by := {row.id for row in rows if row.kind == kind}:
            users += await find(tx, organization_id, used_by, canonical_ids)
    return sorted(users, key=lambda user: user.use.path), canonical_ids
