"""Lists the runs and versions of journeys for pages, commands and other packages. Each list reads one index range."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from psycopg.sql import SQL

from regulars.journeys.model import LivePeriod, RunRow, VersionRow
from regulars.kit.columns import names_of
from regulars.kit.db import Tx
from regulars.kit.ids import SALES_EVENT
from regulars.kit.keyset import Keyset, PageRequest, PageRows

VERSIONS_MAX: Final = 200


_COLUMNS = SQL(names_of(RunRow))


_NEWEST_FIRST: Final = Keyset({"id": UUID}, is_descending=True)
_FILTERS: Final = {
    "step": "step = %(step)s AND state <> 'ended'",
    "state": "state = %(state)s",
    "profile_id": "profile_id = %(profile_id)s",
}


async def list_runs(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    page: PageRequest,
    *,
    state: str | None = None,
    step: str | None = None,
    profile_id: UUID | None = None,
) -> PageRows[RunRow]:
    """Runs, newest first. With a step, only the runs that are at this step now, in any state."""
    return await _NEWEST_FIRST.fetch(
        tx,
        """
        SELECT {columns} FROM journey_runs
        WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s {and_filters} {and_after_position}
        ORDER BY {ordered}
        LIMIT %(limit)s
        """,
        page,
        {
            "organization_id": organization_id,
            "journey_id": journey_id,
            "step": step,
            "state": state if step is None else None,
            "profile_id": profile_id,
        },
        make=RunRow,
        filters=_FILTERS,
        columns=_COLUMNS,
    )


async def list_runs_of_customer(tx: Tx, organization_id: UUID, profile_id: UUID, *, limit: int) -> list[RunRow]:
    """The runs of a customer in all journeys, newest first."""
    return await tx.fetch_all(
        RunRow,
        "SELECT {columns} FROM journey_runs WHERE organization_id = %s AND profile_id = %s ORDER BY id DESC LIMIT %s",
        (organization_id, profile_id, limit),
    )


async def list_runs_of_sale(tx: Tx, organization_id: UUID, sale_id: UUID) -> list[tuple[UUID, str, UUID, str]]:
    """The runs that a sale started: journey id, journey name, run id and state. One index look-up for each journey."""
    return await tx.fetch(
        """
        SELECT j.id, j.name, run.id, run.state
        FROM journeys AS j
        CROSS JOIN LATERAL (
            SELECT id, state FROM journey_runs
            WHERE organization_id = %(organization_id)s AND journey_id = j.id AND fact_kind = 'sale'
              AND fact_id = %(fact_id)s
            LIMIT 1
        ) AS run
        WHERE j.organization_id = %(organization_id)s
        ORDER BY run.id
        """,
        {"organization_id": organization_id, "fact_id": SALES_EVENT.encode(sale_id)},
    )


async def list_runs_of_person(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, after: UUID, limit: int
) -> list[RunRow]:
    """The runs of a person, oldest first."""
    return await tx.fetch_all(
        RunRow,
        "SELECT {columns} FROM journey_runs"
        " WHERE organization_id = %s AND profile_id = %s AND id > %s ORDER BY id LIMIT %s",
        (organization_id, profile_id, after, limit),
    )


async def list_versions(tx: Tx, organization_id: UUID, journey_id: UUID) -> list[VersionRow]:
    """The saved versions of a journey, newest first; version 0 is what an unsaved journey starts from."""
    return await tx.fetch_all(
        VersionRow,
        """
        SELECT {columns} FROM journey_versions
        WHERE organization_id = %s AND journey_id = %s AND version > 0
        ORDER BY version DESC
        LIMIT %s
        """,
        (organization_id, journey_id, VERSIONS_MAX),
    )


async def list_live_periods(tx: Tx, organization_id: UUID, journey_id: UUID) -> list[LivePeriod]:
    """The periods in which versions were live, latest first."""
    return await tx.fetch_all(
        LivePeriod,
        """
        SELECT {columns} FROM journey_activations
        WHERE organization_id = %s AND journey_id = %s
        ORDER BY since DESC
        LIMIT %s
        """,
        (organization_id, journey_id, VERSIONS_MAX),
    )


async def find_journeys_of_runs(tx: Tx, organization_id: UUID, runs: Collection[UUID]) -> dict[UUID, tuple[UUID, str]]:
    """The id and name of the journey of each run."""
    if not runs:
        return {}
    rows = await tx.fetch(
        """
        SELECT r.id, j.id, j.name
        FROM journey_runs r
        JOIN journeys j ON j.organization_id = r.organization_id AND j.id = r.journey_id
        WHERE r.organization_id = %s AND r.id = ANY (%s::uuid[])
        """,
        (organization_id, list(runs)),
    )
    return {row[0]: (row[1], row[2]) for row in rows}


async def name_journeys(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    if not ids:
        return {}
    return await tx.fetch_map(
        "SELECT id, name FROM journeys WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )


async def find_run(tx: Tx, organization_id: UUID, run_id: UUID) -> RunRow | None:
    return await tx.fetch_first(
        RunRow, "SELECT {columns} FROM journey_runs WHERE organization_id = %s AND id = %s", (organization_id, run_id)
    )


async def is_any_run_active(tx: Tx, organization_id: UUID, journey_id: UUID) -> bool:
    is_active = await tx.fetch_value(
        """
        SELECT EXISTS (
            SELECT 1 FROM journey_runs
            WHERE organization_id = %s AND journey_id = %s AND state <> 'ended' AND state <> 'parked'
        )
        """,
        (organization_id, journey_id),
    )
    return bool(is_active)


async def is_any_run_open(tx: Tx, organization_id: UUID) -> bool:
    """Whether any run is open, including parked runs, which a withdrawal of consent ends too."""
    is_open = await tx.fetch_value(
        "SELECT EXISTS (SELECT 1 FROM journey_runs WHERE organization_id = %s AND state <> 'ended')",
        (organization_id,),
    )
    return bool(is_open)


async def find_runs_by_facts(
    tx: Tx, organization_id: UUID, journey_id: UUID, *, fact_kind: str, fact_ids: Sequence[str]
) -> dict[str, UUID]:
    """The runs of the journey that the given facts (sales or consents) have started, by the id of the fact."""
    return await tx.fetch_map(
        """
        SELECT fact_id, id FROM journey_runs
        WHERE organization_id = %s AND journey_id = %s AND fact_kind = %s AND fact_id = ANY (%s::text[])
        """,
        (organization_id, journey_id, fact_kind, list(fact_ids)),
    )
