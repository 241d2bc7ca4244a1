"""Finds the live journeys that a new version of a segment changes, with the customers in them whom it concerns."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from regulars.conditions.tree import Any, InSegment, segments_of
from regulars.journeys.definition import Branch, Definition, Exit
from regulars.journeys.manage import describe_uses
from regulars.journeys.program import Fork, graph_of, references_of
from regulars.journeys.runs.definition_cache import load_shown_definitions
from regulars.kit.db import Tx
from regulars.segments.saved.uses import ActiveUser

# The journeys share this number of customers, whom a page reads. If more are before such a branch of a journey, the
# page does not say for how many it decides otherwise.
CUSTOMERS_READ_MAX: Final = 100_000


class _Version(NamedTuple):
    journey_id: UUID
    version: int


async def find_live_users(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], segment_ids: frozenset[str]
) -> list[ActiveUser]:
    """The live ones among these journeys, which use the segments. Runs follow the version with which they began."""
    live = await tx.fetch_map(
        "SELECT id, live_version FROM journeys"
        " WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND live_version IS NOT NULL",
        (organization_id, list(ids)),
    )
    versions = {*live.items(), *await _find_open_versions(tx, organization_id, live)}
    definitions = await load_shown_definitions(tx, organization_id, versions)
    used: dict[UUID, set[str]] = defaultdict(set)
    asking: dict[UUID, dict[int, set[str]]] = defaultdict(dict)
    for (journey_id, version), definition in definitions.items():
        used[journey_id] |= references_of(definition).segments & segment_ids
        asking[journey_id][version] = find_steps_before(definition, segment_ids)
    users = {journey_id: found for journey_id, found in used.items() if found}
    customers_max = CUSTOMERS_READ_MAX // max(1, len(users))
    return [
        ActiveUser(
            use=use,
            match=Any(of=tuple(InSegment(id=segment_id) for segment_id in sorted(users[journey_id]))),
            customers="the segments that it uses",
            at_branch=await _find_customers_at(
                tx, organization_id, journey_id, asking[journey_id], customers_max=customers_max
            ),
        )
        for journey_id, use in (await describe_uses(tx, organization_id, users)).items()
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


async def _find_open_versions(tx: Tx, organization_id: UUID, journey_ids: Collection[UUID]) -> list[_Version]:
    """The versions of runs that are open."""
    return await tx.fetch_all(
        _Version,
        """
        SELECT {columns} FROM journey_versions
        WHERE organization_id = %(organization_id)s AND journey_id = ANY (%(journey_ids)s::uuid[])
          AND EXISTS (
              SELECT FROM journey_runs
              WHERE organization_id = %(organization_id)s AND journey_id = journey_versions.journey_id
                AND version = journey_versions.version AND state <> 'ended' AND step IS NOT NULL
          )
        """,
        {"organization_id": organization_id, "journey_ids": list(journey_ids)},
    )


async def _find_customers_at(
    tx: Tx, organization_id: UUID, journey_id: UUID, steps: Mapping[int, Collection[str]], *, customers_max: int
) -> frozenset[UUID] | None:
    """The customers in the journey at these steps of its versions; None if there are too many."""
    places = [(version, step) for version, of_version in steps.items() for step in of_version]
    rows = await tx.fetch(
        """
        SELECT profile_id FROM journey_runs
        WHERE organization_id = %s AND journey_id = %s AND state <> 'ended'
          AND (version, step) IN (SELECT * FROM unnest(%s::integer[], %s::text[]))
        LIMIT %s
        """,
        (organization_id, journey_id, [it[0] for it in places], [it[1] for it in places], customers_max + 1),
    )
    return None if len(rows) > customers_max else frozenset(row[0] for row in rows)
