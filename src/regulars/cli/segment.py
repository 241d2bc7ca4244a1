"""`regulars segment`: save segments, count and export their customers, and explain why a customer is in or out."""

import csv
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import msgspec
import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli.definitions import DefinitionCommands, TheId, faults_as_data, print_faults
from regulars.cli.output import CommandError, err, out, pick, print_json, print_table
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, find_organization, read_id, run, run_on_pool
from regulars.columns import lifecycle
from regulars.columns.client import Analysis, running
from regulars.columns.protocol import SegmentCounts, SegmentQuery
from regulars.columns.ranked_source import PAGE_RETRIES_S, ByRank
from regulars.conditions.customers import ConditionExplanation, ObservedConsent
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.settings import Settings
from regulars.kit.text import safe_cell
from regulars.lists.columns import Place
from regulars.lists.sources import read_all_rows
from regulars.profiles.file_columns import PROFILE_COLUMNS, ListedProfile
from regulars.profiles.find import find_profile
from regulars.profiles.search import find_profiles_by_ids
from regulars.segments.definition import Definition, read_definition, schema
from regulars.segments.explain import MembershipExplanation, explain
from regulars.segments.saved import manage
from regulars.segments.saved.model import Segment, SegmentRow
from regulars.segments.saved.resolve import query_of, resolve
from regulars.segments.saved.sizes import find_last_sizes, store_size

app = typer.Typer(no_args_is_help=True)

Result = TypeVar("Result")
PAGE_MEMBERS: Final = 1_000
# Longer than a page would wait: after its start, the analysis process first loads the customers that it counts.
DEADLINE_S: Final = 120.0
MATCHES_NO_CUSTOMER: Final = "The segment is empty"


async def _find_all(context: CommandContext) -> list[dict[str, Any]]:
    rows = await manage.list_segments(context.tx, context.organization_id)
    sizes = await find_last_sizes(context.tx, context.organization_id, [row.id for row in rows])
    counts = {
        segment_id: pick(size, "total", "may_be_texted", "version", "counted_at") for segment_id, size in sizes.items()
    }
    return [{**COMMANDS.row_as_data(row), "last_count": counts.get(row.id)} for row in rows]


COMMANDS: Final[DefinitionCommands[Definition, Segment]] = DefinitionCommands(
    kind=ids.SEGMENT,
    schema=schema,
    read=read_definition,
    save_new=manage.create_segment,
    save_version=manage.update_segment,
    load=manage.load_segment,
    find_all=_find_all,
    columns=(
        *("id", "name", "version", ("CHANGED (UTC)", "updated_at"), ("CUSTOMERS", "last_count.total")),
        *(("MAY BE TEXTED", "last_count.may_be_texted"), ("COUNTED (UTC)", "last_count.counted_at")),
    ),
    acts=("segment.create", "segment.update"),
    recorded=("version",),
    consequence=f"{MATCHES_NO_CUSTOMER} until this is fixed",
)
COMMANDS.add_to(
    app,
    create="Save a definition; if it has errors, print them and save nothing.",
    update="Save a new version; everything that uses the segment uses it from now on.",
    list_="List the segments with their last counts, last changed first.",
    show="Show a segment: its definition, and errors that make it empty.",
)


@app.command()
def delete(organization: OfOrganization, segment_id: TheId) -> None:
    """Delete a segment that nothing uses."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def work(context: CommandContext) -> SegmentRow:
        row = await manage.delete_segment(context.tx, context.organization_id, identifier)
        await context.record("segment.delete", segment_id, before={"version": row.version})
        return row

    err.print(f"Deleted {run(organization, work).name}.", markup=False)


@app.command()
def count(organization: OfOrganization, segment_id: TheId, as_json: AsJson = False) -> None:
    """Count the customers of a segment, and how many of them may be texted."""

    async def count_now(
        analysis: Analysis, pool: Database, organization_id: UUID, segment: Segment, query: SegmentQuery
    ) -> SegmentCounts:
        counts = await analysis.count_segment(organization_id, query, deadline_s=DEADLINE_S)
        async with pool.transaction() as tx:
            await store_size(tx, organization_id, segment.row.id, counts, version=segment.row.version)
        return counts

    segment, counts = _analyse(organization, segment_id, count_now)
    print_faults(segment.faults, MATCHES_NO_CUSTOMER)
    if as_json:
        print_json({"id": segment.id, "version": segment.row.version, **_counts_as_data(counts)})
        return
    split = counts.split
    cells = (counts.total, split.may_be_texted, split.never_asked, split.withdrawn, split.do_not_contact)
    print_table(
        ["CUSTOMERS", "MAY BE TEXTED", "NEVER ASKED", "WITHDRAWN", "DO NOT CONTACT"],
        [[str(cell) for cell in cells]],
    )
    err.print(f"Exact, as of {format_timestamp(counts.as_of)}.", markup=False)


@app.command()
def members(
    organization: OfOrganization,
    segment_id: TheId,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV, with names and numbers.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number.")] = None,
) -> None:
    """List the ids of the customers of a segment."""
    writer = csv.writer(sys.stdout)

    async def write(
        analysis: Analysis, pool: Database, organization_id: UUID, segment: Segment, query: SegmentQuery
    ) -> int:
        async def load(tx: Tx, ids_: Sequence[UUID]) -> list[list[str]]:
            if not as_csv:
                return [[ids.PROFILE.encode(it)] for it in ids_]
            profiles = {it.id: it for it in await find_profiles_by_ids(tx, organization_id, ids_)}
            rows = [ListedProfile(profiles[it], profiles[it].phone_number, "") for it in ids_ if it in profiles]
            return [PROFILE_COLUMNS.cells(row, sees_personal=True, place=Place.COMMAND) for row in rows]

        request = partial(analysis.members, organization_id, query, deadline_s=DEADLINE_S)
        source = ByRank(request=request, load=load, retries_s=PAGE_RETRIES_S)
        if as_csv:
            writer.writerow(PROFILE_COLUMNS.header(Place.COMMAND))
        written = 0
        async for cells in read_all_rows(source, pool.reading, limit=min(PAGE_MEMBERS, limit or PAGE_MEMBERS)):
            if as_csv:
                writer.writerow([safe_cell(cell) for cell in cells])
            else:
                out.print(cells[0], markup=False)
            written += 1
            if written == limit:
                break
        if as_csv:
            async with pool.transaction() as tx:
                after = {"version": segment.row.version, "rows": written}
                await record(tx, organization_id, OPERATOR, "segment.export", segment.id, after=after)
        return written

    segment, written = _analyse(organization, segment_id, write)
    err.print(f"{written} customers of {segment.row.name}, version {segment.row.version}.", markup=False)


@app.command("explain")
def explain_one(
    organization: OfOrganization,
    segment_id: TheId,
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="External id or prof_ id of the customer.")],
    as_json: AsJson = False,
) -> None:
    """Show why a customer is in or out of a segment."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def work(context: CommandContext) -> MembershipExplanation | None:
        segment = await manage.load_segment(context.tx, context.organization_id, identifier)
        customer = await find_profile(context.tx, context.organization_id, ids.read_reference(ids.PROFILE, profile))
        if customer is None:
            return None
        match, damage = segment.definition.match, segment.damage
        return await explain(context.tx, context.organization_id, match, customer.id, damage=damage)

    explanation = run(organization, work)
    if explanation is None:
        raise CommandError(f"There is no customer {profile}.")
    if as_json:
        print_json(
            {
                "is_in": explanation.is_in,
                "faults": faults_as_data(explanation.resolved.faults),
                "why": _tree_as_data(explanation.tree),
            }
        )
        return
    out.print("in" if explanation.is_in else "out", markup=False)
    print_faults(explanation.resolved.faults, MATCHES_NO_CUSTOMER)
    for line in _tree_lines(explanation.tree, 0):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def rebuild(organization: OfOrganization) -> None:
    """Rebuild the data that counts use; counts wait until it is done."""

    async def work(context: CommandContext) -> None:
        if not await lifecycle.rebuild(context.tx, context.organization_id):
            raise CommandError("The organization has no segments, so there is nothing to rebuild.")
        await context.record("segment.rebuild", "segments")

    run(organization, work)
    err.print("The worker rebuilds it; `regulars segment count` works again when it is done.", markup=False)


UseCase = Callable[[Analysis, Database, UUID, Segment, SegmentQuery], Awaitable[Result]]


def _analyse(organization: str, segment_id: str, use_case: UseCase[Result]) -> tuple[Segment, Result]:
    """Run a use case for a saved segment with the analysis process of a running server, else start one for this
    command."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def work(pool: Database, settings: Settings) -> tuple[Segment, Result]:
        async with pool.transaction() as tx:
            owner = await find_organization(tx.connection, organization)
            segment = await manage.load_segment(tx, owner.id, identifier)
            query = query_of(await resolve(tx, owner.id, segment.definition.match, damage=segment.damage))
        async with running(settings) as analysis:
            return segment, await use_case(analysis, pool, owner.id, segment, query)

    return run_on_pool(work)


def _counts_as_data(counts: SegmentCounts) -> dict[str, Any]:
    return {
        "total": counts.total,
        "customers": counts.customers,
        "split": msgspec.to_builtins(counts.split),
        "conditions": [
            {"path": list(each.path), "count": each.count, "unreadable": each.unreadable} for each in counts.conditions
        ],
        "as_of": counts.as_of,
    }


def _tree_as_data(explanation: ConditionExplanation) -> dict[str, Any]:
    return {
        "condition": str(type(explanation.condition).__struct_config__.tag),
        "holds": explanation.holds,
        "saw": _describe_evidence(explanation),
        "of": [_tree_as_data(inner) for inner in explanation.inner],
    }


def _tree_lines(explanation: ConditionExplanation, depth: int) -> list[str]:
    symbol = {True: "+", False: "-", None: "?"}[explanation.holds]
    name = f"{type(explanation.condition).__struct_config__.tag} {getattr(explanation.condition, 'key', '')}".rstrip()
    evidence = _describe_evidence(explanation)
    return [
        f"{'  ' * depth}{symbol} {name}{f' ({evidence})' if evidence else ''}",
        *(line for inner in explanation.inner for line in _tree_lines(inner, depth + 1)),
    ]


def _describe_evidence(explanation: ConditionExplanation) -> str | None:
    """Describe briefly which data of the customer decided a condition."""
    observation = explanation.observation
    if observation is None:
        return None
    facts = {name: value for name, value in observation._asdict().items() if name not in {"sale", "last", "consent"}}
    for name in ("sale", "last"):
        value = getattr(observation, name, None)
        if value is not None:
            facts[name] = getattr(value, "external_id", value)
    if isinstance(observation, ObservedConsent):
        facts = {name: value for name, value in observation.consent._asdict().items() if value is not None}
    return ", ".join(f"{name}: {value}" for name, value in facts.items())
