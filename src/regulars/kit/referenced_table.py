"""Find, lock and write the rows of a table that callers name by its canonical id or by their own external id.

Several keys are looked up one by one, through LATERAL. With `= ANY`, the planner may read all rows of the organization:
before the first ANALYZE it expects few rows, and it caches that plan.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, LiteralString, Protocol, TypeVar
from uuid import UUID

import msgspec

from regulars.kit.arrays import Ids, Texts, Timestamps
from regulars.kit.columns import Columns, fill
from regulars.kit.db import Tx
from regulars.kit.ids import ByExternalId, ById, Reference, split_references

_EACH: LiteralString = """
SELECT found.* FROM unnest(%(keys)s::{type}[]) AS requested (key)
CROSS JOIN LATERAL (
    SELECT {columns} FROM {table} WHERE organization_id = %(organization_id)s AND {key} = requested.key LIMIT 1
) AS found
"""
# Locks rows in the order of their ids.
_LOCK: LiteralString = """
SELECT locked.*
FROM (
    SELECT (
        SELECT id FROM {table} WHERE organization_id = %(organization_id)s AND external_id = named.external_id
    ) AS id
    FROM unnest(%(external_ids)s::text[]) AS named (external_id)
    UNION
    SELECT id FROM unnest(%(ids)s::uuid[]) AS requested_ids (id)
    ORDER BY id
) AS requested
CROSS JOIN LATERAL (
    SELECT {columns} FROM {table} WHERE organization_id = %(organization_id)s AND id = requested.id FOR {mode}
) AS locked
"""
_INSERT: LiteralString = """
INSERT INTO {table} (organization_id, created_at, updated_at, {columns})
SELECT %(organization_id)s, %(now)s, %(now)s, it.* FROM {records}
ORDER BY it.external_id
ON CONFLICT (organization_id, external_id) DO NOTHING
RETURNING id
"""
_UPDATE: LiteralString = """
UPDATE {table} SET updated_at = it.updated_at, {changed} FROM {records}
WHERE {table}.organization_id = %(organization_id)s AND {table}.id = it.id
"""


def select_each(table: LiteralString, columns: LiteralString) -> LiteralString:
    """The statement of a `ReferenceLookup` that reads these columns of a table."""
    return fill(_EACH, table=table, columns=columns)


class ReferencedRow(Protocol):
    @property
    def id(self) -> UUID: ...
    @property
    def external_id(self) -> str: ...


Row = TypeVar("Row", bound=ReferencedRow)


class ReferenceLookup(Generic[Row]):
    """Finds rows by their references; `make` makes a row from the values of the columns.

    `statement` selects the row of each of the parameter `keys`, whose column is `{key}` and whose type is `{type}`.
    """

    def __init__(self, statement: LiteralString, make: Callable[..., Row]) -> None:
        self._by_id = fill(statement, type="uuid", key="id")
        self._by_external_id = fill(statement, type="text", key="external_id")
        self._make = make

    async def find(self, tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, Row]:
        """Return the rows that the references name; a reference without a row is not in the result."""
        ids, external_ids = split_references(references)
        rows: dict[Reference, Row] = {ById(row.id): row for row in await self.find_by_ids(tx, organization_id, ids)}
        for row in await self.find_by_external_ids(tx, organization_id, external_ids):
            rows[ByExternalId(row.external_id)] = row
        return rows

    async def find_by_ids(self, tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[Row]:
        """Return the rows that exist, in no order."""
        parameters = {"organization_id": organization_id, "keys": Ids(ids)}
        return await self._fetch(tx, self._by_id, parameters) if ids else []

    async def find_by_external_ids(self, tx: Tx, organization_id: UUID, external_ids: Collection[str]) -> list[Row]:
        """Like `find_by_ids`."""
        parameters = {"organization_id": organization_id, "keys": list(external_ids)}
        return await self._fetch(tx, self._by_external_id, parameters) if external_ids else []

    async def _fetch(self, tx: Tx, statement: LiteralString, parameters: Mapping[str, Any]) -> list[Row]:
        return [self._make(*row) for row in await tx.fetch(statement, parameters)]


class ReferencedTable(ReferenceLookup[Row]):
    """Locks and writes rows too. `changeable` are the columns of an update, beside `updated_at`."""

    def __init__(
        self, table: LiteralString, columns: LiteralString, make: Callable[..., Row], *, changeable: Columns
    ) -> None:
        super().__init__(select_each(table, columns), make)
        self._lock = fill(_LOCK, table=table, columns=columns)
        self._insert = (Columns(id=Ids, external_id=Texts) | changeable).write(_INSERT, table=table)
        self._update = (Columns(id=Ids, updated_at=Timestamps) | changeable).write(
            _UPDATE, table=table, changed=changeable.assign("it")
        )

    async def lock(
        self,
        tx: Tx,
        organization_id: UUID,
        references: Collection[Reference],
        *,
        mode: LiteralString = "NO KEY UPDATE",
    ) -> dict[Reference, Row]:
        """Lock the rows that the references name; a reference without a row is not in the result.

        By default the lock is for a change. The ids do not change, so transactions that only refer to the row need not
        wait.
        """
        ids, external_ids = split_references(references)
        parameters = {"organization_id": organization_id, "ids": ids, "external_ids": external_ids}
        locked = await self._fetch(tx, fill(self._lock, mode=mode), parameters)
        rows: dict[Reference, Row] = {ById(row.id): row for row in locked}
        rows |= {ByExternalId(row.external_id): row for row in locked}
        return {reference: rows[reference] for reference in references if reference in rows}

    async def insert_if_new(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> set[UUID]:
        """Insert the rows that do not exist yet, in the order of their external_id; returns the inserted ids."""
        values = {"organization_id": organization_id, "now": tx.now, "records": _encode(rows)}
        return set(await tx.fetch_column(self._insert, values))

    async def update(self, tx: Tx, organization_id: UUID, rows: Sequence[Row]) -> None:
        await tx.execute(self._update, {"organization_id": organization_id, "records": _encode(rows)})


def _encode(rows: Sequence[ReferencedRow]) -> str:
    return msgspec.json.encode(rows).decode()
