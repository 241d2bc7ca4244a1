"""`regulars journey`: save automations from files, activate, pause and backtest them, and inspect their runs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
import typer

from regulars.cli.definitions import AVersion, DefinitionCommands, TheId
from regulars.cli.output import CommandError, err, pick, print_json, print_outcome, print_rows, print_table
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, bind, change, read_id, run
from regulars.cli.sms_settings import load_sms_settings
from regulars.journeys import manage
from regulars.journeys.backtest.report import NOTE, BacktestReport, sorted_counts
from regulars.journeys.backtest.run import DAYS_MAX
from regulars.journeys.backtest.run import backtest as run_backtest
from regulars.journeys.definition import Definition, read_definition, schema
from regulars.journeys.model import JourneyRow, RunRow
from regulars.journeys.runs.lifecycle import resume_run
from regulars.journeys.runs.lists import list_runs
from regulars.journeys.runs.trace import list_trace
from regulars.kit import ids
from regulars.kit.keyset import PageRequest

app = typer.Typer(no_args_is_help=True)

LIST_MAX: Final = 1_000
# `by` is the id of the sale or consent that started the run.
RUN_COLUMNS: Final = (
    *("id", ("CUSTOMER", "profile_id"), "by", "state", "step", "waits_for", "due_at"),
    ("OUTCOME", lambda run: run["outcome"] or run["reason"]),
)
TRACE_COLUMNS: Final = (("#", "sequence"), ("AT (UTC)", "at"), "step", "event", "detail")
TheRun = Annotated[str, typer.Argument(metavar="RUN", help="The id that `journey runs` shows.", show_default=False)]


class WaitingRuns(StrEnum):
    """What happens to runs after a long pause of their journey."""

    CONTINUE = "continue"
    END = "end"


class RunState(StrEnum):
    ACTIVE = "active"
    PARKED = "parked"
    ENDED = "ended"


async def _find_all(context: CommandContext) -> list[dict[str, Any]]:
    rows = await manage.list_journeys(context.tx, context.organization_id, limit=LIST_MAX)
    return [COMMANDS.row_as_data(row) for row in rows]


COMMANDS: Final[DefinitionCommands[Definition, manage.Journey]] = DefinitionCommands(
    kind=ids.JOURNEY,
    schema=schema,
    read=read_definition,
    save_new=manage.create_journey,
    save_version=manage.update_journey,
    load=manage.load_journey,
    find_all=_find_all,
    columns=("id", "name", "state", "version", ("LIVE", "live_version"), ("CHANGED (UTC)", "updated_at")),
    acts=("journey.create", "journey.save_version"),
    recorded=("name", "state", "version"),
    consequence="It cannot run yet",
)
COMMANDS.add_to(
    app,
    create="Save a definition as a draft; print what prevents it from running.",
    update="Save a new version; a live journey uses it for new entries, and active runs keep their version.",
    list_="List the journeys, newest first.",
    show="Show a journey: its state, its definition, and what prevents it from running.",
)


@app.command()
def activate(
    organization: OfOrganization,
    journey_id: TheId,
    waiting: Annotated[WaitingRuns | None, typer.Option(help="What to do with runs after a long pause.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a journey live: purchases and consents from now on start runs."""

    async def activate_journey(*arguments: Any) -> JourneyRow:
        return (await manage.activate(*arguments, waiting=None if waiting is None else waiting.value)).row

    sentence = "Live with version {live_version}."
    COMMANDS.change(organization, journey_id, activate_journey, "journey.activate", sentence, as_json=as_json)


@app.command()
def pause(organization: OfOrganization, journey_id: TheId, as_json: AsJson = False) -> None:
    """Pause a journey: no run starts or continues until it is activated again."""
    COMMANDS.change(organization, journey_id, manage.pause, "journey.pause", "Paused.", as_json=as_json)


@app.command()
def archive(organization: OfOrganization, journey_id: TheId, as_json: AsJson = False) -> None:
    """Archive a journey for good, and end its runs."""
    COMMANDS.change(organization, journey_id, manage.archive, "journey.archive", "Archived.", as_json=as_json)


@app.command()
def runs(
    organization: OfOrganization,
    journey_id: TheId,
    state: Annotated[RunState | None, typer.Option(help="Only runs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="Maximum number, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the runs of a journey."""
    identifier = read_id(ids.JOURNEY, journey_id)
    page = PageRequest(limit)
    rows = run(organization, bind(list_runs, identifier, page, state=state))
    print_rows([_run_as_data(row) for row in rows], RUN_COLUMNS, as_json=as_json)


@app.command()
def trace(organization: OfOrganization, run_id: TheRun, as_json: AsJson = False) -> None:
    """Show the history of a run: each step, its decision and its time."""
    identifier = read_id(ids.RUN, run_id)
    rows = run(organization, bind(list_trace, identifier))
    if not rows:
        raise CommandError(f"There is no run {run_id}; `regulars journey runs` shows the ids.")
    # JSON has microseconds, because several steps of a run may happen within a millisecond.
    as_data = [{**row._asdict(), "at": msgspec.to_builtins(row.at) if as_json else row.at} for row in rows]
    print_rows(as_data, TRACE_COLUMNS, as_json=as_json)


@app.command()
def resume(organization: OfOrganization, run_id: TheRun, as_json: AsJson = False) -> None:
    """Retry a parked run."""
    identifier = read_id(ids.RUN, run_id)
    change(organization, bind(resume_run, identifier), "journey.resume_run", run_id)
    print_outcome({"id": run_id, "state": RunState.ACTIVE.value}, "The run is active again.", as_json=as_json)


@app.command()
def backtest(
    organization: OfOrganization,
    journey_id: TheId,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Number of days to look back.")] = 30,
    version: AVersion = None,
    as_json: AsJson = False,
) -> None:
    """Show which customers would have entered and which texts they would have got. Sends and stores nothing."""
    identifier = read_id(ids.JOURNEY, journey_id)

    async def work(context: CommandContext) -> BacktestReport:
        texting = await load_sms_settings(context)
        return await run_backtest(
            context.tx, context.organization_id, identifier, texting=texting, days=days, version=version
        )

    report = run(organization, work)
    if as_json:
        print_json({"journey_id": ids.JOURNEY.encode(identifier), **report.as_data()})
        return
    days_and_total = [*((day.isoformat(), counted) for day, counted in report.by_day.items()), ("All", report.total)]
    print_table(
        ["DAY", "ENTRIES", "TEXTS", "SKIPPED", "NOT ENTERED"],
        [
            [name, str(day.entries), str(day.texts), _join_counts(day.skipped), _join_counts(day.not_entered)]
            for name, day in days_and_total
        ],
    )
    err.print(f"Runs: {_join_counts({**report.outcomes, 'still waiting': report.still_waiting})}.", markup=False)
    if report.is_cut:
        err.print(f"Only the first {report.facts} events were used; choose fewer days.", style="yellow", markup=False)
    err.print(NOTE, markup=False)


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {times}" for name, times in sorted_counts(counts).items())


def _run_as_data(run: RunRow) -> dict[str, Any]:
    return {
        "id": ids.RUN.encode(run.id),
        "profile_id": ids.PROFILE.encode(run.profile_id),
        "version": run.version,
        "by": run.fact_id,
        **pick(run, "state", "step", "waits_for", "due_at", "outcome", "reason", "entered_at", "ended_at"),
    }
