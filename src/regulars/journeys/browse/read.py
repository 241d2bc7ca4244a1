"""Lists of runs and versions."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.journeys.browse import queries
from regulars.journeys.runs.model import RunRow, SpanRow, VersionRow
from regulars.kit.db import Tx
from regulars.kit.ids import SALES_EVENT
from regulars.kit.keyset import PageRequest, PageRows

VERSIONS_MAX: Final = 200


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
    """The newest first."""
    return await queries.list_runs(tx, organization_id, journey_id, page, state=state, step=step, profile_id=profile_id)


async def list_runs_of_customer(tx: Tx, organization_id: UUID, profile_id: UUID, *, limit: int) -> list[RunRow]:
    """In all journeys, the newest first."""
    return await queries.list_runs_of_customer(tx, organization_id, profile_id, limit=limit)


async def list_runs_of_sale(tx: Tx, organization_id: UUID, sale_id: UUID) -> list[tuple[UUID, str, UUID, str]]:
    """What a ticket started: journey, its name, run and its state."""
    return await queries.list_runs_of_fact(tx, organization_id, "sale", SALES_EVENT.encode(sale_id))


async def list_versions(tx: Tx, organization_id: UUID, journey_id: UUID) -> list[VersionRow]:
    """The newest first."""
    return await queries.list_versions(tx, organization_id, journey_id, limit=VERSIONS_MAX)


async def list_spans(tx: Tx, organization_id: UUID, journey_id: UUID) -> list[SpanRow]:
    """When which version was live, the last first."""
    return await queries.list_spans(tx, organization_id, journey_id, limit=VERSIONS_MAX)


async def name_journeys(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    return await queries.name_journeys(tx, organization_id, ids) if ids else {}


async def find_journeys_of_runs(tx: Tx, organization_id: UUID, runs: Collection[UUID]) -> dict[UUID, tuple[UUID, str]]:
    """The journey of each run, and its name."""
    return await queries.find_journeys_of_runs(tx, organization_id, runs) if runs else {}


async def list_runs_of_person(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, after: UUID, limit: int
) -> list[RunRow]:
    """Every run of the customer, the oldest first."""
    return await queries.list_runs_of_person(tx, organization_id, profile_id, after=after, limit=limit)
