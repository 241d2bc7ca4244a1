"""`regulars campaign`: save, check, send and stop campaigns, which send one text to the customers of segments."""

import re
import sys
from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import typer

from regulars.accounts.audit.log import OPERATOR, is_person, record
from regulars.accounts.team import require_editor
from regulars.campaigns import manage
from regulars.campaigns.approval import approve, find_changers
from regulars.campaigns.approval_rule import ApprovalRule, save_rule
from regulars.campaigns.confirmed_numbers import RECIPIENTS_MAX, Cost, read_cost, read_question
from regulars.campaigns.definition import Definition, read_definition, schema
from regulars.campaigns.errors import QuestionNotAnswered
from regulars.campaigns.estimate import Estimate, estimate
from regulars.campaigns.exact_cost import ExactCost, find_exact_cost, request_exact_cost
from regulars.campaigns.follow_up import follow_up
from regulars.campaigns.model import CampaignRow, RecipientOutcome
from regulars.campaigns.proof import write_proof
from regulars.campaigns.recipients import RecipientRow, list_recipients
from regulars.campaigns.totals import count_outcomes
from regulars.cli.campaign_estimate import estimate_as_data, exact_as_data, print_estimate
from regulars.cli.definitions import DefinitionCommands, TheId, faults_as_data, print_faults
from regulars.cli.member import operator_name
from regulars.cli.output import CommandError, ExitCode, pick, print_json, print_outcome, print_rows
from regulars.cli.runner import (
    AsJson,
    CommandContext,
    OfOrganization,
    bind,
    change,
    find_organization,
    read_id,
    run,
    run_on_pool,
)
from regulars.columns.client import running
from regulars.columns.protocol import AnalysisUnavailable, NotReady
from regulars.experiments.arms import HELD_OUT_ARM
from regulars.kit import ids
from regulars.kit.db import Database, Tx
from regulars.kit.settings import Settings
from regulars.texts.settings.change import PRICE_DECIMALS_MAX

app = typer.Typer(no_args_is_help=True)

LIST_MAX: Final = 1_000
RECIPIENTS_LISTED_MAX: Final = 100_000
# `open_at` is when the text may be queued, `fed_at` when it was queued.
RECIPIENT_COLUMNS: Final = (("CUSTOMER", "profile_id"), "variant", "outcome", "reason", "open_at", "fed_at")
ExpectedRecipients = Annotated[
    int,
    typer.Option(
        "--recipients",
        min=0,
        max=RECIPIENTS_MAX,
        help="How many recipients you expect; more than the margin pauses it.",
    ),
]
ApprovingMember = Annotated[
    str, typer.Option("--as", metavar="EMAIL", help="The member who approves it.", show_default=False)
]
ExpectedCost = Annotated[
    list[str] | None,
    typer.Option("--cost", help="The cost you expect, such as 12.50EUR, once for each currency; more pauses it."),
]
# With as many decimals as prices, because a question is answered with the exact cost.
_AMOUNT: Final = re.compile(
    rf"(?P<amount>[0-9]{{1,9}}(\.[0-9]{{1,{PRICE_DECIMALS_MAX}}})?) ?(?P<currency>[A-Za-z]{{3}})"
)


async def _find_all(context: CommandContext) -> list[dict[str, Any]]:
    rows = await manage.list_campaigns(context.tx, context.organization_id, limit=LIST_MAX)
    outcomes = await count_outcomes(context.tx, context.organization_id, [row.id for row in rows])
    return [{**COMMANDS.row_as_data(row), "outcomes": outcomes.get(row.id, {})} for row in rows]


def _decode(row: CampaignRow) -> dict[str, Any]:
    """Decode the confirmed cost, and the question about higher numbers that a paused campaign asks."""
    return {
        "confirmed_cost": read_cost(row.confirmed_cost),
        "question": msgspec.to_builtins(read_question(row.question)),
        "approved_cost": read_cost(row.approved_cost),
        "approved_segments": None if row.approved_segments is None else msgspec.json.decode(row.approved_segments),
    }


COMMANDS: Final[DefinitionCommands[Definition, manage.Campaign]] = DefinitionCommands(
    kind=ids.CAMPAIGN,
    schema=schema,
    read=read_definition,
    save_new=manage.create_campaign,
    save_version=manage.update_campaign,
    load=manage.load_campaign,
    find_all=_find_all,
    columns=("id", "name", "state", "recipients", "outcomes", "starts_at", ("CHANGED (UTC)", "updated_at")),
    decode=_decode,
    acts=("campaign.create", "campaign.update"),
    recorded=("name", "state", "revision"),
    consequence="It cannot be sent yet",
)
COMMANDS.add_to(
    app,
    create="Save a definition as a draft; print what prevents it from being sent.",
    update="Change a draft; a campaign that was paused before its start becomes a draft again.",
    list_="List the campaigns, newest first.",
    show="Show a campaign: its state, its definition, and what prevents it from being sent.",
)


@app.command()
def check(
    organization: OfOrganization,
    campaign_id: TheId,
    is_exact: Annotated[
        bool, typer.Option("--exact", help="Let the worker count over the whole audience; a later check prints it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what prevents a campaign from being sent; else whom it reaches, its parts and its cost."""
    identifier = read_id(ids.CAMPAIGN, campaign_id)

    async def work(pool: Database, settings: Settings) -> tuple[manage.Campaign, ExactCost | None, Estimate | str]:
        async with pool.transaction() as tx:
            organization_id = (await find_organization(tx.connection, organization)).id
            campaign = await manage.load_campaign(tx, organization_id, identifier)
            if campaign.faults:
                return campaign, None, "It has faults."
            if is_exact:
                await request_exact_cost(tx, organization_id, identifier)
            exact = await find_exact_cost(tx, organization_id, identifier)
        try:
            async with running(settings) as analysis:
                return campaign, exact, await estimate(pool, analysis, organization_id, campaign.definition)
        except (NotReady, AnalysisUnavailable) as error:
            return campaign, exact, str(error)

    campaign, exact, estimate_or_reason = run_on_pool(work)
    if as_json:
        estimated = None if isinstance(estimate_or_reason, str) else estimate_as_data(estimate_or_reason)
        data = {"id": campaign_id, "faults": faults_as_data(campaign.faults)}
        print_json({**data, "estimate": estimated, "exact": exact_as_data(exact)})
        return
    print_faults(campaign.faults, COMMANDS.consequence)
    if campaign.faults:
        return
    print_outcome({}, "It can be sent.", as_json=False)
    if isinstance(estimate_or_reason, str):
        print_outcome({}, f"Its audience cannot be counted now. {estimate_or_reason}", as_json=False)
    else:
        print_estimate(estimate_or_reason, exact)


def _make_schedule_command(*, is_now: bool) -> Callable[..., None]:
    def schedule(
        organization: OfOrganization,
        campaign_id: TheId,
        recipients: ExpectedRecipients,
        cost: ExpectedCost = None,
        as_json: AsJson = False,
    ) -> None:
        work = partial(manage.schedule, confirmed_recipients=recipients, confirmed_cost=_read_cost(cost), is_now=is_now)
        sentence = f"It starts {'now' if is_now else 'at {starts_at}'}; nothing is sent after {{not_after}}."
        act = "campaign.send" if is_now else "campaign.schedule"
        _change(organization, campaign_id, work, act, sentence, as_json=as_json)

    return schedule


app.command("send", help="Start a draft now, whatever its schedule says.")(_make_schedule_command(is_now=True))
app.command("schedule", help="Confirm a draft, to start at the time in its definition.")(
    _make_schedule_command(is_now=False)
)


def _read_cost(amounts: list[str] | None) -> dict[str, Decimal] | None:
    """Parse amounts such as `12.50EUR` and `3 CHF`; None if there are none."""
    cost: dict[str, Decimal] = {}
    for text in amounts or ():
        matched = _AMOUNT.fullmatch(text.strip())
        if matched is None:
            raise CommandError(f"'{text}' is not an amount; write it as 12.50EUR.", code=ExitCode.USAGE)
        cost[matched["currency"].upper()] = Decimal(matched["amount"])
    return cost or None


@app.command("approve")
def approve_(
    organization: OfOrganization,
    campaign_id: TheId,
    *,
    member: ApprovingMember,
    recipients: ExpectedRecipients,
    cost: ExpectedCost = None,
    as_json: AsJson = False,
) -> None:
    """Approve a campaign that another person wrote, for these recipients and this cost with its margin."""
    identifier, amounts = read_id(ids.CAMPAIGN, campaign_id), _read_cost(cost)

    async def work(context: CommandContext) -> CampaignRow:
        by = await require_editor(context.tx, context.organization_id, member)
        campaign = await manage.load_campaign(context.tx, context.organization_id, identifier)
        changers = await find_changers(context.tx, context.organization_id, campaign.row, campaign.definition)
        if not all(map(is_person, changers)):
            raise CommandError("A command changed the campaign or its segments without --as; approve it on its page.")
        row = await approve(context.tx, context.organization_id, identifier, by=by, recipients=recipients, cost=amounts)
        after = {"name": row.name, "revision": row.revision, "recipients": row.approved_recipients, "as": by}
        await context.record("campaign.approve", campaign_id, after=after)
        return row

    row = run(organization, work)
    print_outcome(
        COMMANDS.row_as_data(row), f"Approved: up to {row.approved_recipients:,} recipients.", as_json=as_json
    )


@app.command()
def approval(
    organization: OfOrganization,
    recipients: Annotated[int | None, typer.Option(min=0, max=RECIPIENTS_MAX, help="The limit of recipients.")] = None,
    cost: Annotated[
        list[str] | None, typer.Option(help="The limit of a cost, such as 100EUR; one per currency.")
    ] = None,
) -> None:
    """Set above how many recipients or which cost another person must approve a campaign; no limit needs none."""
    rule = ApprovalRule(recipients, _read_cost(cost) or {})
    change(organization, bind(save_rule, rule), "campaign.approval", "", after=msgspec.to_builtins(rule))
    print_outcome({}, "Saved.", as_json=False)


@app.command()
def pause(organization: OfOrganization, campaign_id: TheId, as_json: AsJson = False) -> None:
    """Stop sending at once; `resume` continues with the recipients who are left."""
    _change(organization, campaign_id, manage.pause, "campaign.pause", "Paused.", as_json=as_json)


@app.command()
def resume(
    organization: OfOrganization,
    campaign_id: TheId,
    recipients: Annotated[
        int | None, typer.Option(min=0, max=RECIPIENTS_MAX, help="Confirm another number of recipients.")
    ] = None,
    cost: ExpectedCost = None,
    as_json: AsJson = False,
) -> None:
    """Continue a paused campaign. If it asks a question, give the numbers that you confirm."""
    amounts = _read_cost(cost)
    work = partial(manage.resume, confirmed_recipients=recipients, confirmed_cost=amounts)
    try:
        _change(organization, campaign_id, work, "campaign.resume", "Resumed: {state}.", as_json=as_json)
    except QuestionNotAnswered as error:
        asked = "" if error.question is None else _write_options(error.question.recipients, error.question.cost)
        given = _write_options(recipients, amounts)
        instead = f" instead of{given}" if given else ""
        raise CommandError(f"{error} Nothing was confirmed: repeat the command with{asked}{instead}.") from None


def _write_options(recipients: int | None, cost: Cost | None) -> str:
    """The options of `resume` that confirm these numbers."""
    costs = (f" --cost {amount:f}{currency}" for currency, amount in (cost or {}).items())
    return f"{'' if recipients is None else f' --recipients {recipients}'}{''.join(costs)}"


@app.command()
def cancel(organization: OfOrganization, campaign_id: TheId, as_json: AsJson = False) -> None:
    """Stop sending at once and for good."""
    _change(organization, campaign_id, manage.cancel, "campaign.cancel", "Cancelled.", as_json=as_json)


@app.command()
def archive(organization: OfOrganization, campaign_id: TheId, as_json: AsJson = False) -> None:
    """Leave a campaign out of lists; its results stay."""
    _change(organization, campaign_id, manage.archive, "campaign.archive", "Archived.", as_json=as_json)


@app.command()
def duplicate(organization: OfOrganization, campaign_id: TheId, as_json: AsJson = False) -> None:
    """Make a draft with the same definition, without its times."""

    async def work(*arguments: Any, by: str) -> CampaignRow:
        return (await manage.duplicate(*arguments, by=by)).row

    _change(organization, campaign_id, work, "campaign.create", "The draft is {id}.", as_json=as_json)


@app.command("follow-up")
def follow_up_(organization: OfOrganization, campaign_id: TheId, as_json: AsJson = False) -> None:
    """Make a segment of those who received a campaign and did not buy since, and a draft for them."""

    async def work(tx: Tx, organization_id: UUID, identifier: UUID, *, by: str) -> CampaignRow:
        segment, draft = await follow_up(tx, organization_id, identifier, by=by)
        subject, after = ids.SEGMENT.encode(segment.row.id), {"version": segment.row.version}
        await record(tx, organization_id, OPERATOR, "segment.create", subject, after=after)
        return draft.row

    _change(organization, campaign_id, work, "campaign.create", "The draft is {id}.", as_json=as_json)


def _change(
    organization: str,
    campaign_id: str,
    use_case: Callable[..., Awaitable[CampaignRow]],
    act: str,
    sentence: str,
    *,
    as_json: bool,
) -> None:
    work = partial(use_case, by=operator_name())
    COMMANDS.change(organization, campaign_id, work, act, sentence, as_json=as_json)


@app.command()
def proof(organization: OfOrganization, campaign_id: TheId) -> None:
    """Write one line of JSON for each text: its words, times, provider's id, state, and the consent it relied on."""
    identifier = read_id(ids.CAMPAIGN, campaign_id)

    async def work(context: CommandContext) -> None:
        await manage.load_campaign(context.tx, context.organization_id, identifier)
        await context.record("campaign.proof", campaign_id)

    async def write(pool: Database, organization_id: UUID) -> None:
        async for lines in write_proof(pool, organization_id, identifier):
            sys.stdout.write(lines.decode())

    run(organization, work, after_commit=write)


@app.command()
def recipients(
    organization: OfOrganization,
    campaign_id: TheId,
    outcome: Annotated[RecipientOutcome, typer.Option(help="Which recipients.")],
    limit: Annotated[int, typer.Option(min=1, max=RECIPIENTS_LISTED_MAX, help="Maximum number.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the recipients with one outcome."""
    identifier = read_id(ids.CAMPAIGN, campaign_id)
    rows = run(organization, bind(list_recipients, identifier, outcome=outcome, limit=limit))
    print_rows([_recipient_as_data(row) for row in rows], RECIPIENT_COLUMNS, as_json=as_json)


def _recipient_as_data(row: RecipientRow) -> dict[str, Any]:
    return {
        "profile_id": ids.PROFILE.encode(row.profile_id),
        "variant": row.arm if row.arm > HELD_OUT_ARM else None,  # variants are numbered from 1
        "reason": row.reason or None,
        **pick(row, "outcome", "open_at", "fed_at"),
    }
