"""Finds the live journeys that a new version of a segment changes, with the customers in them whom it concerns."""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from regulars.conditions.tree import Any, InSegment, segments_of
from regulars.journeys.definition import Branch, Definition, Exit
from regulars.journeys.manage import describe_uses
from regulars.journeys.program import Fork, graph_of, references_of
from regulars.journeys.runs.definition_cache import load_shown_definitions
from regulars.kit.db import Tx
from regulars.segments.saved.uses import ActiveUser

# With more open runs, the page does not say for how many customers the next branch decides otherwise.
RUNS_READ_MAX: Final = 100_000


class _OpenRun(NamedTuple):
    journey_id: UUID
    version: int
    step: str
    profile_id: UUID


async def find_live_users(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], segment_ids: frozenset[str]
) -> list[ActiveUser]:
    """The live ones among these journeys, which use the segments. Runs follow the version with which they began."""
    live = await tx.fetch_map(
        "SELECT id, live_version FROM journeys"
        " WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND live_version IS NOT NULL",
        (organization_id, list(ids)),
    )
    runs = await _find_open_runs(tx, organization_id, live, limit=RUNS_READ_MAX + 1)
    is_known = len(runs) <= RUNS_READ_MAX
    versions = {*live.items(), *((run.journey_id, run.version) for run in runs)}
    definitions = await load_shown_definitions(tx, organization_id, versions)
    asking = {key: find_steps_before(definition, segment_ids) for key, definition in definitions.items()}
    used = {
        journey_id: sorted(
            {
                segment_id
                for (owner_id, _), definition in definitions.items()
                if owner_id == journey_id
                for segment_id in references_of(definition).segments & segment_ids
            }
        )
        for journey_id in live
    }
    return [
        ActiveUser(
            use=use,
            match=Any(of=tuple(InSegment(id=segment_id) for segment_id in used[journey_id])),
            customers="the segments that it uses",
            at_branch=frozenset(
                run.profile_id
                for run in runs
                if run.journey_id == journey_id and run.step in asking[journey_id, run.version]
            )
            if is_known
            else None,
        )
        for journey_id, use in (await describe_uses(tx, organization_id, live)).items()
        if used[journey_id]
    ]


def find_steps_before(definition: Definition, segment_ids: frozenset[str]) -> set[str]:
    """The steps from which the next branch on some path checks one of these segments; such a branch itself too."""
    is_before: dict[str | None, bool] = {None: False}
    # The nodes are in an order in which each comes after the steps that follow it.
    for node in graph_of(definition).nodes.values():
        match node.step:
            case Branch(condition=condition):
                is_before[node.id] = not segments_of(condition).isdisjoint(segment_ids)
            case Exit():
                is_before[node.id] = False
            case _ if isinstance(node.step, Fork):
                is_before[node.id] = is_before[node.then] or is_before[node.otherwise]
            case _:
                is_before[node.id] = is_before[node.next]
    return {step_id for step_id, is_it in is_before.items() if step_id is not None and is_it}


async def _find_open_runs(
    tx: Tx, organization_id: UUID, journey_ids: Collection[UUID], *, limit: int
) -> list[_OpenRun]:
    return await tx.fetch_all(
        _OpenRun,
        """
        SELECT {columns} FROM journey_runs
        WHERE organization_id = %s AND journey_id = ANY (%s::uuid[]) AND state <> 'ended' AND step IS NOT NULL
        LIMIT %s
        """,
        (organization_id, list(journey_ids), limit),
    )
