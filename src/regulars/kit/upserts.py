"""Upsert a list of rows by their external ids, several of which may be the same, and retry rows that lose a race."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.errors import Unavailable
from regulars.kit.ids import ByExternalId
from regulars.kit.referenced_table import ReferencedTable, Row

ATTEMPTS_MAX = 5


class NamedUpsert(Protocol):
    @property
    def external_id(self) -> str: ...


Upsert = TypeVar("Upsert", bound=NamedUpsert)
Outcome = TypeVar("Outcome")
# Applies upserts to a row, or to None if there is none yet; returns the row after them, and the outcome of each.
ApplyAll = Callable[[Row | None, Sequence[Upsert]], tuple[Row | None, list[Outcome]]]


async def upsert_rows(
    tx: Tx,
    organization_id: UUID,
    table: ReferencedTable[Row],
    upserts: Sequence[Upsert],
    apply_all: ApplyAll[Row, Upsert, Outcome],
) -> list[Outcome]:
    """Apply the upserts in their order and return the outcome of each; several may name the same row.

    Existing rows are locked, and written only if an upsert changes them. A row that does not exist is inserted in its
    state after all its upserts. If another transaction inserts it first, our insert waits and returns nothing, and the
    next attempt applies the same upserts to the other transaction's row.
    """
    outcomes: dict[int, Outcome] = {}
    pending: dict[str, list[int]] = {}
    for position, upsert in enumerate(upserts):
        pending.setdefault(upsert.external_id, []).append(position)
    for _ in range(ATTEMPTS_MAX):
        if not pending:
            break
        waiting = {key: [upserts[position] for position in positions] for key, positions in pending.items()}
        written = await _upsert_once(tx, organization_id, table, waiting, apply_all)
        for key, key_outcomes in written.items():
            outcomes.update(zip(pending.pop(key), key_outcomes, strict=True))
    if pending:
        raise Unavailable("The same rows are being created and erased over and over; try again.")
    return [outcomes[position] for position in range(len(upserts))]


async def _upsert_once(
    tx: Tx,
    organization_id: UUID,
    table: ReferencedTable[Row],
    upserts: Mapping[str, Sequence[Upsert]],
    apply_all: ApplyAll[Row, Upsert, Outcome],
) -> dict[str, list[Outcome]]:
    """Make one attempt for all rows; a row that another transaction inserted first is not in the result."""
    stored = await table.lock(tx, organization_id, [ByExternalId(external_id) for external_id in upserts])
    outcomes: dict[str, list[Outcome]] = {}
    created: list[Row] = []
    changed: list[Row] = []
    for external_id, row_upserts in upserts.items():
        before = stored.get(ByExternalId(external_id))
        after, outcomes[external_id] = apply_all(before, row_upserts)
        if after is not None and before is None:
            created.append(after)
        elif after is not None and after is not before:
            changed.append(after)
    if changed:
        await table.update(tx, organization_id, changed)
    if created:
        inserted = await table.insert_if_new(tx, organization_id, created)
        for row in created:
            if row.id not in inserted:
                del outcomes[row.external_id]
    return outcomes
