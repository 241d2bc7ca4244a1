"""`regulars journey`: definitions from files, their life, their runs and traces."""

import getpass
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import texting as desk
from regulars.cli.output import CommandError, Exit, err, out, print_json, print_table, shown_time
from regulars.cli.transact import AsJson, OfOrganization, read_id
from regulars.journeys import manage
from regulars.journeys.backtest.model import NOTE, Report, sorted_counts
from regulars.journeys.backtest.run import DAYS_MAX
from regulars.journeys.backtest.run import backtest as play_back
from regulars.journeys.check import as_data
from regulars.journeys.definition import Definition
from regulars.journeys.errors import JourneyError
from regulars.journeys.model import JourneyRow
from regulars.journeys.read import read_definition, schema
from regulars.journeys.runs.find import list_runs, read_trace
from regulars.journeys.runs.model import RunRow, TraceRow
from regulars.journeys.runs.resume import resume_run
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.messaging.settings.store import Texting

app = typer.Typer(no_args_is_help=True, help="Automations that a recent sale or consent enters at most once.")

LIST_MAX = 1_000
TheJourney = Annotated[str, typer.Argument(metavar="ID", help="The id that `journey list` shows.", show_default=False)]
TheFile = Annotated[Path, typer.Argument(metavar="FILE.json", help="The definition.", show_default=False)]
TheRun = Annotated[str, typer.Argument(metavar="RUN", help="The id that `journey runs` shows.", show_default=False)]


class Waiting(StrEnum):
    CONTINUE = "continue"
    END = "end"


class RunState(StrEnum):
    ACTIVE = "active"
    PARKED = "parked"
    ENDED = "ended"


@app.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a definition."""
    out.print(schema().decode(), markup=False, end="")


@app.command()
def create(organization: OfOrganization, file: TheFile, as_json: AsJson = False) -> None:
    """Save a definition as a draft; what keeps it from running is said."""
    definition = _read(file)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> manage.Journey:
        saved = await manage.create_journey(tx, organization_id, definition, created_by=getpass.getuser())
        await _record(tx, organization_id, "journey.create", saved.row)
        return saved

    _show_saved(desk.run(organization, act), as_json=as_json)


@app.command()
def update(organization: OfOrganization, journey_id: TheJourney, file: TheFile, as_json: AsJson = False) -> None:
    """Save a new version; a live journey takes it for new facts, and runs finish on theirs."""
    definition, identifier = _read(file), read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> manage.Journey:
        by = getpass.getuser()
        saved = await manage.update_journey(tx, organization_id, identifier, definition, created_by=by)
        await _record(tx, organization_id, "journey.save_version", saved.row)
        return saved

    _show_saved(desk.run(organization, act), as_json=as_json)


@app.command("list")
def list_all(organization: OfOrganization, as_json: AsJson = False) -> None:
    """List the journeys, the newest first."""

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> list[JourneyRow]:
        return await manage.list_journeys(tx, organization_id, limit=LIST_MAX)

    rows = desk.run(organization, act)
    if as_json:
        print_json([_as_data(row) for row in rows])
        return
    print_table(
        ["ID", "NAME", "STATE", "VERSION", "LIVE", "CHANGED (UTC)"],
        [
            [
                ids.JOURNEY.encode(row.id),
                row.name,
                row.state,
                str(row.version),
                str(row.live_version or ""),
                shown_time(row.updated_at),
            ]
            for row in rows
        ],
    )


@app.command()
def show(
    organization: OfOrganization,
    journey_id: TheJourney,
    version: Annotated[int | None, typer.Option(min=1, help="An earlier version.")] = None,
) -> None:
    """Show a journey: its state, its definition, and what keeps it from running."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> manage.Journey:
        return await manage.load_journey(tx, organization_id, identifier, version=version)

    journey = desk.run(organization, act)
    print_json({**_as_data(journey.row), **_content(journey)})


@app.command()
def activate(
    organization: OfOrganization,
    journey_id: TheJourney,
    waiting: Annotated[Waiting | None, typer.Option(help="What becomes of runs that waited out a long pause.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make it live: facts recorded from now on bring customers in."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> manage.Journey:
        journey = await manage.activate(
            tx, organization_id, identifier, waiting=None if waiting is None else waiting.value
        )
        await _record(tx, organization_id, "journey.activate", journey.row)
        return journey

    row = desk.run(organization, act).row
    _show_state(row, f"Live with version {row.live_version}.", as_json=as_json)


@app.command()
def pause(organization: OfOrganization, journey_id: TheJourney, as_json: AsJson = False) -> None:
    """Nobody enters and no run goes on until it is activated again."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> JourneyRow:
        row = await manage.pause(tx, organization_id, identifier)
        await _record(tx, organization_id, "journey.pause", row)
        return row

    row = desk.run(organization, act)
    _show_state(row, "Paused.", as_json=as_json)


@app.command()
def archive(organization: OfOrganization, journey_id: TheJourney, as_json: AsJson = False) -> None:
    """End it for good; its runs leave."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> JourneyRow:
        row = await manage.archive(tx, organization_id, identifier)
        await _record(tx, organization_id, "journey.archive", row)
        return row

    row = desk.run(organization, act)
    _show_state(row, "Archived.", as_json=as_json)


@app.command()
def runs(
    organization: OfOrganization,
    journey_id: TheJourney,
    state: Annotated[RunState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="How many at most, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the runs of a journey."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> list[RunRow]:
        return list(await list_runs(tx, organization_id, identifier, state=state, limit=limit))

    found = desk.run(organization, act)
    if as_json:
        print_json([_run_as_data(run) for run in found])
        return
    print_table(
        ["ID", "CUSTOMER", "BY", "STATE", "STEP", "WAITS FOR", "DUE (UTC)", "OUTCOME"],
        [
            [
                ids.RUN.encode(run.id),
                ids.PROFILE.encode(run.profile_id),
                run.fact_id,
                run.state,
                run.step or "",
                run.waits_for or "",
                shown_time(run.due_at),
                run.outcome or run.reason or "",
            ]
            for run in found
        ],
    )


@app.command()
def trace(organization: OfOrganization, run_id: TheRun, as_json: AsJson = False) -> None:
    """Show what a run saw and decided, and when."""
    identifier = read_id(ids.RUN, run_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> list[TraceRow]:
        return list(await read_trace(tx, organization_id, identifier))

    rows = desk.run(organization, act)
    if not rows:
        raise CommandError(f"There is no run {run_id}; `regulars journey runs` shows the ids.")
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    print_table(
        ["#", "AT (UTC)", "STEP", "EVENT", "DETAIL"],
        [
            [
                str(row.sequence),
                shown_time(row.at),
                row.step or "",
                row.event,
                ", ".join(f"{name}: {value}" for name, value in row.detail.items()),
            ]
            for row in rows
        ],
    )


@app.command()
def resume(organization: OfOrganization, run_id: TheRun, as_json: AsJson = False) -> None:
    """Let a run that was parked try again."""
    identifier = read_id(ids.RUN, run_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> None:
        await resume_run(tx, organization_id, identifier)
        await record(tx, organization_id, OPERATOR, "journey.resume_run", run_id)

    desk.run(organization, act)
    if as_json:
        print_json({"id": run_id, "state": RunState.ACTIVE.value})
    else:
        err.print("It tries again.", markup=False)


@app.command()
def backtest(
    organization: OfOrganization,
    journey_id: TheJourney,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="How far back.")] = 30,
    version: Annotated[int | None, typer.Option(min=1, help="An earlier version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play it over what was recorded: who would enter, what would be texted. Nothing is sent or written."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(tx: Tx, organization_id: UUID, texting: Texting) -> Report:
        return await play_back(tx, organization_id, identifier, texting=texting, days=days, version=version)

    report = desk.run(organization, act)
    if as_json:
        print_json({"journey_id": ids.JOURNEY.encode(identifier), **report.as_data()})
        return
    days_and_total = [*((day.isoformat(), counted) for day, counted in report.by_day.items()), ("All", report.total)]
    print_table(
        ["DAY", "ENTRIES", "TEXTS", "SKIPPED", "NOT ENTERED"],
        [
            [name, str(day.entries), str(day.texts), _shown(day.skipped), _shown(day.not_entered)]
            for name, day in days_and_total
        ],
    )
    err.print(f"Runs: {_shown({**report.outcomes, 'still waiting': report.still_waiting})}.", markup=False)
    if report.is_cut:
        err.print(f"Only the first {report.facts} facts were played; ask for fewer days.", style="yellow", markup=False)
    err.print(NOTE, markup=False)


async def _record(tx: Tx, organization_id: UUID, act: str, row: JourneyRow) -> None:
    after = {"name": row.name, "state": row.state, "version": row.version}
    await record(tx, organization_id, OPERATOR, act, ids.JOURNEY.encode(row.id), after=after)


def _shown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {times}" for name, times in sorted_counts(counts).items())


def _read(file: Path) -> Definition:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CommandError(f"The file {file} cannot be read: {error.strerror}.", code=Exit.USAGE) from error
    try:
        return read_definition(content)
    except JourneyError as error:
        raise CommandError(str(error)) from error


def _show_state(row: JourneyRow, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_data(row))
    else:
        err.print(said, markup=False)


def _show_saved(journey: manage.Journey, *, as_json: bool) -> None:
    if as_json:
        print_json({**_as_data(journey.row), "faults": as_data(journey.faults)})
        return
    out.print(ids.JOURNEY.encode(journey.row.id), markup=False)
    for fault in journey.faults:
        err.print(f"It cannot run yet: {fault.place}: {fault.message}", style="yellow", markup=False)


def _as_data(row: JourneyRow) -> dict[str, Any]:
    return {
        "id": ids.JOURNEY.encode(row.id),
        "name": row.name,
        "state": row.state,
        "version": row.version,
        "live_version": row.live_version,
        "paused_at": None if row.paused_at is None else format_timestamp(row.paused_at),
        "created_at": format_timestamp(row.created_at),
        "updated_at": format_timestamp(row.updated_at),
    }


def _content(journey: manage.Journey) -> dict[str, Any]:
    return {"definition": manage.definition_as_data(journey.definition), "faults": as_data(journey.faults)}


def _run_as_data(run: RunRow) -> dict[str, Any]:
    return {
        "id": ids.RUN.encode(run.id),
        "profile_id": ids.PROFILE.encode(run.profile_id),
        "version": run.version,
        "by": run.fact_id,
        "state": run.state,
        "step": run.step,
        "waits_for": run.waits_for,
        "due_at": None if run.due_at is None else format_timestamp(run.due_at),
        "outcome": run.outcome,
        "reason": run.reason,
        "entered_at": format_timestamp(run.entered_at),
        "ended_at": None if run.ended_at is None else format_timestamp(run.ended_at),
    }
