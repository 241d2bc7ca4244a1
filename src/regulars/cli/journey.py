"""`regulars journey`: definitions from files, their life, their runs and traces."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
import typer

from regulars.cli.definitions import AVersion, DefinitionCommands, TheId
from regulars.cli.frame import Act, AsJson, CommandContext, OfOrganization, read_id, run
from regulars.cli.output import CommandError, err, print_json, print_outcome, print_rows, print_table
from regulars.cli.texting import load
from regulars.journeys import manage
from regulars.journeys.backtest.report import NOTE, Report, sorted_counts
from regulars.journeys.backtest.run import DAYS_MAX
from regulars.journeys.backtest.run import backtest as play_back
from regulars.journeys.definition import read_definition, schema
from regulars.journeys.model import JourneyRow, RunRow
from regulars.journeys.runs.lifecycle import resume_run
from regulars.journeys.runs.lists import list_runs
from regulars.journeys.runs.trace import list_trace
from regulars.kit import ids
from regulars.kit.keyset import PageRequest

app = typer.Typer(no_args_is_help=True)

LIST_MAX: Final = 1_000
RUN_COLUMNS: Final = (
    *("id", ("CUSTOMER", "profile_id"), "by", "state", "step", "waits_for", "due_at"),
    ("OUTCOME", lambda run: run["outcome"] or run["reason"]),
)
TRACE_COLUMNS: Final = (("#", "sequence"), ("AT (UTC)", "at"), "step", "event", "detail")
TheRun = Annotated[str, typer.Argument(metavar="RUN", help="The id that `journey runs` shows.", show_default=False)]


class Waiting(StrEnum):
    CONTINUE = "continue"
    END = "end"


class RunState(StrEnum):
    ACTIVE = "active"
    PARKED = "parked"
    ENDED = "ended"


async def _find_all(it: CommandContext) -> list[dict[str, Any]]:
    return [_as_data(row) for row in await manage.list_journeys(it.tx, it.organization_id, limit=LIST_MAX)]


def _as_data(row: JourneyRow) -> dict[str, Any]:
    return {
        "id": ids.JOURNEY.encode(row.id),
        "name": row.name,
        "state": row.state,
        "version": row.version,
        "live_version": row.live_version,
        "paused_at": row.paused_at,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


COMMANDS: Final = DefinitionCommands(
    kind=ids.JOURNEY,
    schema=schema,
    read=read_definition,
    save_new=manage.create_journey,
    save_version=manage.update_journey,
    load=manage.load_journey,
    find_all=_find_all,
    columns=("id", "name", "state", "version", ("LIVE", "live_version"), ("CHANGED (UTC)", "updated_at")),
    row_as_data=_as_data,
    acts=("journey.create", "journey.save_version"),
    recorded=("name", "state", "version"),
    consequence="It cannot run yet",
)
COMMANDS.add_to(
    app,
    create="Save a definition as a draft; what keeps it from running is said.",
    update="Save a new version; a live journey takes it for new facts, and runs finish on theirs.",
    list_="List the journeys, the newest first.",
    show="Show a journey: its state, its definition, and what keeps it from running.",
)


@app.command()
def activate(
    organization: OfOrganization,
    journey_id: TheId,
    waiting: Annotated[Waiting | None, typer.Option(help="What becomes of runs that waited out a long pause.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make it live: facts recorded from now on bring customers in."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(it: CommandContext) -> JourneyRow:
        journey = await manage.activate(
            it.tx, it.organization_id, identifier, waiting=None if waiting is None else waiting.value
        )
        return journey.row

    _change(organization, act, "journey.activate", "Live with version {live_version}.", as_json=as_json)


@app.command()
def pause(organization: OfOrganization, journey_id: TheId, as_json: AsJson = False) -> None:
    """Nobody enters and no run goes on until it is activated again."""
    identifier = read_id(ids.JOURNEY, journey_id)
    _change(
        organization,
        lambda it: manage.pause(it.tx, it.organization_id, identifier),
        "journey.pause",
        "Paused.",
        as_json=as_json,
    )


@app.command()
def archive(organization: OfOrganization, journey_id: TheId, as_json: AsJson = False) -> None:
    """End it for good; its runs leave."""
    identifier = read_id(ids.JOURNEY, journey_id)
    _change(
        organization,
        lambda it: manage.archive(it.tx, it.organization_id, identifier),
        "journey.archive",
        "Archived.",
        as_json=as_json,
    )


def _change(organization: str, change: Act[JourneyRow], act: str, sentence: str, *, as_json: bool) -> None:
    async def work(it: CommandContext) -> JourneyRow:
        row = await change(it)
        await COMMANDS.record(it, act, row)
        return row

    data = _as_data(run(organization, work))
    print_outcome(data, sentence.format_map(data), as_json=as_json)


@app.command()
def runs(
    organization: OfOrganization,
    journey_id: TheId,
    state: Annotated[RunState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="How many at most, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the runs of a journey."""
    identifier = read_id(ids.JOURNEY, journey_id)
    page = PageRequest(limit)
    found = run(organization, lambda it: list_runs(it.tx, it.organization_id, identifier, page, state=state))
    print_rows([_run_as_data(each) for each in found], RUN_COLUMNS, as_json=as_json)


@app.command()
def trace(organization: OfOrganization, run_id: TheRun, as_json: AsJson = False) -> None:
    """Show what a run saw and decided, and when."""
    identifier = read_id(ids.RUN, run_id)
    rows = run(organization, lambda it: list_trace(it.tx, it.organization_id, identifier))
    if not rows:
        raise CommandError(f"There is no run {run_id}; `regulars journey runs` shows the ids.")
    # Microseconds stay in the JSON: steps of one run may lie close together.
    as_data = [{**row._asdict(), "at": msgspec.to_builtins(row.at) if as_json else row.at} for row in rows]
    print_rows(as_data, TRACE_COLUMNS, as_json=as_json)


@app.command()
def resume(organization: OfOrganization, run_id: TheRun, as_json: AsJson = False) -> None:
    """Let a run that was parked try again."""
    identifier = read_id(ids.RUN, run_id)

    async def act(it: CommandContext) -> None:
        await resume_run(it.tx, it.organization_id, identifier)
        await it.record("journey.resume_run", run_id)

    run(organization, act)
    print_outcome({"id": run_id, "state": RunState.ACTIVE.value}, "It tries again.", as_json=as_json)


@app.command()
def backtest(
    organization: OfOrganization,
    journey_id: TheId,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="How far back.")] = 30,
    version: AVersion = None,
    as_json: AsJson = False,
) -> None:
    """Play it over what was recorded: who would enter, what would be texted. Nothing is sent or written."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def act(it: CommandContext) -> Report:
        texting = await load(it)
        return await play_back(it.tx, it.organization_id, identifier, texting=texting, days=days, version=version)

    report = run(organization, act)
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


def _shown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {times}" for name, times in sorted_counts(counts).items())


def _run_as_data(run: RunRow) -> dict[str, Any]:
    return {
        "id": ids.RUN.encode(run.id),
        "profile_id": ids.PROFILE.encode(run.profile_id),
        "version": run.version,
        "by": run.fact_id,
        "state": run.state,
        "step": run.step,
        "waits_for": run.waits_for,
        "due_at": run.due_at,
        "outcome": run.outcome,
        "reason": run.reason,
        "entered_at": run.entered_at,
        "ended_at": run.ended_at,
    }
