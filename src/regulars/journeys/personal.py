"""Exports and erases what journeys store about a person: runs, their traces, and attribute values in conditions."""

from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple
from uuid import UUID

from regulars.conditions.erased_values import erase_values
from regulars.inbox.retention import erase_from_facts
from regulars.journeys.model import RunRow, TraceRow
from regulars.journeys.retention import DEFINITIONS, erase_runs
from regulars.journeys.runs.lists import list_runs_of_person, name_journeys
from regulars.journeys.runs.trace import list_trace
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.ids import JOURNEY, RUN
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, export_rows

PAGE_RUNS: Final = 50
_STAFF: Final = "about the retailer's staff, who are not customers"
_STEP: Final = "the id of a step"


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    await _erase_runs(tx, organization_id, people)
    await erase_values(tx, organization_id, people, DEFINITIONS)


async def _erase_runs(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    # Listeners lock recorded events about texts before runs. The same order here avoids deadlocks.
    await erase_from_facts(tx, organization_id, profile_ids=people.profile_ids, number_hashes=people.number_hashes)
    await erase_runs(tx, organization_id, people.profile_ids)


def export_runs(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    async def list_rows(tx: Tx, after: UUID, limit: int) -> list[_TracedRun]:
        runs = await list_runs_of_person(tx, person.organization_id, person.profile_id, after=after, limit=limit)
        names = await name_journeys(tx, person.organization_id, {run.journey_id for run in runs})
        return [
            _TracedRun(run, names.get(run.journey_id), await list_trace(tx, person.organization_id, run.id))
            for run in runs
        ]

    return export_rows(database, list_rows, _as_data, position=lambda it: it.run.id, page_rows=PAGE_RUNS)


class _TracedRun(NamedTuple):
    run: RunRow
    journey_name: str | None
    trace: list[TraceRow]


def _as_data(traced: _TracedRun) -> dict[str, Any]:
    run, name, trace = traced
    return {
        "id": RUN.encode(run.id),
        "journey": {"id": JOURNEY.encode(run.journey_id), "name": name, "version": run.version},
        "state": run.state,
        "outcome": run.outcome,
        "reason": run.reason,
        "entered_at": format_timestamp(run.entered_at),
        "ended_at": None if run.ended_at is None else format_timestamp(run.ended_at),
        "trace": [
            {"at": format_timestamp(entry.at), "step": entry.step, "event": entry.event, "detail": entry.detail}
            for entry in trace
        ],
    }


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "journey_runs.profile_id",
        "journey_runs.fact_id",
        "journey_runs.reason",
        "journey_customers.profile_id",
        "journey_trace.detail",
        "journey_versions.definition",
        "journey_drafts.definition",
        "journey_backtests.definition",
    ),
    not_personal={
        "journeys.name": "what staff call a journey",
        "journey_versions.created_by": _STAFF,
        "journey_drafts.changed_by": _STAFF,
        "journey_backtests.asked_by": _STAFF,
        "journey_backtests.report": "counts by day and reason",
        "journey_backtests.failure": "why a backtest failed",
        "journey_activations.trigger": "the name of a trigger",
        "journey_runs.step": _STEP,
        "journey_runs.outcome": "one of the ways a run ends",
        "journey_trace.step": _STEP,
        "journey_trace.event": "one of the events of a run",
        "journey_totals": "counts",
    },
    erase=_erase,
    erase_late_rows=_erase_runs,
    exports={"journey_runs": export_runs},
)
