"""`regulars sms holdout`: show and set the share of customers who get no text for a quarter, for comparison."""

from typing import Annotated, Any

import typer

from regulars.cli.output import pick, print_outcome
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, bind, run
from regulars.experiments.holdout.settings import GlobalHoldout, change_holdout, load_holdout

app = typer.Typer(no_args_is_help=True, help="Show and set the global holdout.")


@app.command("show")
def show_holdout(organization: OfOrganization, as_json: AsJson = False) -> None:
    """Show the global holdout and its quarters."""
    holdout = run(organization, bind(load_holdout))
    print_outcome(_as_data(holdout), _describe(holdout), as_json=as_json)


@app.command("set")
def set_holdout(
    organization: OfOrganization,
    *,
    percent: Annotated[int | None, typer.Option(help="Share of the customers, 0 to 20 percent; 0 ends it.")] = None,
    journeys: Annotated[bool | None, typer.Option(help="Whether texts of journeys are held out too.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change the global holdout. A running quarter keeps its customers; 0 ends it at once."""

    async def work(context: CommandContext) -> GlobalHoldout:
        before = await load_holdout(context.tx, context.organization_id)
        after = await change_holdout(
            context.tx,
            context.organization_id,
            percent=before.percent if percent is None else percent,
            with_journeys=before.with_journeys if journeys is None else journeys,
            by=None,
        )
        await context.record("texts.holdout", "texts", before=before.as_data(), after=after.as_data())
        return after

    holdout = run(organization, work)
    print_outcome(_as_data(holdout), f"Saved. {_describe(holdout)}", as_json=as_json)


def _describe(holdout: GlobalHoldout) -> str:
    journeys = "with journeys" if holdout.with_journeys else "without journeys"
    setting = f"The global holdout is {holdout.percent} %, {journeys}."
    running = holdout.running
    if running is None:
        return f"{setting} No customer is held out now."
    if running.drawn_at is None:
        return f"{setting} The customers of this quarter are being drawn."
    held_out = f"{running.held_out:,} of {running.customers:,} customers are held out until {running.ends_on}."
    return f"{setting} {held_out}"


def _as_data(holdout: GlobalHoldout) -> dict[str, Any]:
    names = ("quarter", "percent", "begins_on", "ends_on", "customers", "held_out", "drawn_at", "stopped_at")
    quarters = [pick(quarter, *names) for quarter in holdout.quarters]
    return {**holdout.as_data(), "next_draw_at": holdout.due_at if holdout.percent else None, "quarters": quarters}
