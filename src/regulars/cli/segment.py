"""`regulars segment`: definitions from files, exact counts, members, and why somebody is in or out."""

import csv
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli.definitions import DefinitionCommands, TheId, faults_as_data, print_faults
from regulars.cli.frame import AsJson, CommandContext, OfOrganization, find_organization, read_id, run, run_on_pool
from regulars.cli.output import CommandError, err, out, print_json, print_table
from regulars.cli.segment_shown import as_data, figures_as_data, lines_of, size_as_data, tree_as_data
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database
from regulars.kit.settings import Settings
from regulars.kit.text import safe_cell
from regulars.profiles.find import find_profile
from regulars.profiles.search import find_by_ids
from regulars.segments.analysis.client import Analysis, follow, running
from regulars.segments.analysis.protocol import SegmentCounts, SegmentQuery
from regulars.segments.columns import lifecycle
from regulars.segments.definition import read_definition, schema
from regulars.segments.explain import Why, explain
from regulars.segments.saved import manage
from regulars.segments.saved.model import Segment, SegmentRow
from regulars.segments.saved.resolve import query_of, resolve
from regulars.segments.saved.sizes import find_last_sizes, store_size

app = typer.Typer(no_args_is_help=True)

Answer = TypeVar("Answer")
PAGE: Final = 1_000
# A command has the patience of whoever waits for it; the first count after a start reads columns.
PATIENCE_S: Final = 120.0
CSV_HEADER: Final = ("id", "external_id", "first_name", "last_name", "phone_number", "created_at")
MATCHES_NOBODY: Final = "It matches nobody"


async def _find_all(it: CommandContext) -> list[dict[str, Any]]:
    rows = await manage.list_segments(it.tx, it.organization_id)
    sizes = await find_last_sizes(it.tx, it.organization_id, [row.id for row in rows])
    return [{**as_data(row), "last_count": size_as_data(sizes.get(row.id))} for row in rows]


DefinitionCommands(
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
    row_as_data=as_data,
    acts=("segment.create", "segment.update"),
    recorded=("version",),
    consequence=f"{MATCHES_NOBODY} until this is mended",
).add_to(
    app,
    create="Save a definition; whatever is wrong with it is said with its place, and nothing is saved.",
    update="Save a new version; whoever uses the segment follows it from now on.",
    list_="List the segments, the one changed last first, with their last counts.",
    show="Show a segment: its definition, and what makes it match nobody.",
)


@app.command()
def delete(organization: OfOrganization, segment_id: TheId) -> None:
    """Delete a segment that nothing uses."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def act(it: CommandContext) -> SegmentRow:
        row = await manage.delete_segment(it.tx, it.organization_id, identifier)
        await it.record("segment.delete", segment_id, before={"version": row.version})
        return row

    err.print(f"{run(organization, act).name} is deleted.", markup=False)


@app.command()
def count(organization: OfOrganization, segment_id: TheId, as_json: AsJson = False) -> None:
    """Count the customers of a segment now, and how many of them may be texted."""

    async def ask(
        analysis: Analysis, pool: Database, organization_id: UUID, segment: Segment, query: SegmentQuery
    ) -> SegmentCounts:
        found = await analysis.figures(organization_id, query, deadline_s=PATIENCE_S)
        async with pool.transaction() as tx:
            await store_size(
                tx,
                organization_id,
                segment.row.id,
                version=segment.row.version,
                total=found.total,
                may_be_texted=found.split.may_be_texted,
            )
        return found

    segment, figures = _ask(organization, segment_id, ask)
    print_faults(segment.faults, MATCHES_NOBODY)
    if as_json:
        print_json({"id": segment.id, "version": segment.row.version, **figures_as_data(figures)})
        return
    split = figures.split
    cells = (figures.total, split.may_be_texted, split.never_asked, split.withdrawn, split.do_not_contact)
    print_table(
        ["CUSTOMERS", "MAY BE TEXTED", "NEVER ASKED", "WITHDRAWN", "DO NOT CONTACT"],
        [[str(cell) for cell in cells]],
    )
    err.print(f"Exact, as of {format_timestamp(figures.as_of)}.", markup=False)


@app.command()
def members(
    organization: OfOrganization,
    segment_id: TheId,
    as_csv: Annotated[bool, typer.Option("--csv", help="Names and numbers too, as a CSV file.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="How many at most.")] = None,
) -> None:
    """List the customers of a segment by their canonical ids."""
    writer = csv.writer(sys.stdout)

    async def ask(
        analysis: Analysis, pool: Database, organization_id: UUID, segment: Segment, query: SegmentQuery
    ) -> int:
        if as_csv:
            writer.writerow(CSV_HEADER)
        written = 0
        wanted = PAGE if limit is None else min(PAGE, limit)
        first = await analysis.members(organization_id, query, limit=wanted, deadline_s=PATIENCE_S)
        async for found in follow(analysis, organization_id, query, first, limit=PAGE, deadline_s=PATIENCE_S):
            some = found.profile_ids if limit is None else found.profile_ids[: limit - written]
            written += len(some)
            if as_csv:
                writer.writerows(await _csv_rows(pool, organization_id, some))
            else:
                for identifier in some:
                    out.print(ids.PROFILE.encode(identifier), markup=False)
            if written == limit:
                break
        if as_csv:
            async with pool.transaction() as tx:
                after = {"version": segment.row.version, "rows": written}
                await record(tx, organization_id, OPERATOR, "segment.export", segment.id, after=after)
        return written

    segment, written = _ask(organization, segment_id, ask)
    err.print(f"{written} customers of {segment.row.name}, version {segment.row.version}.", markup=False)


@app.command("explain")
def explain_one(
    organization: OfOrganization,
    segment_id: TheId,
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="The customer: external_id or prof_ id.")],
    as_json: AsJson = False,
) -> None:
    """Say why a customer is in or out, from their own rows."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def act(it: CommandContext) -> Why | None:
        segment = await manage.load_segment(it.tx, it.organization_id, identifier)
        found = await find_profile(it.tx, it.organization_id, ids.read_reference(ids.PROFILE, profile))
        return None if found is None else await explain(it.tx, it.organization_id, segment.definition.match, found.id)

    why = run(organization, act)
    if why is None:
        raise CommandError(f"There is no customer {profile}.")
    if as_json:
        print_json({"is_in": why.is_in, "faults": faults_as_data(why.resolved.faults), "why": tree_as_data(why.tree)})
        return
    out.print("in" if why.is_in else "out", markup=False)
    print_faults(why.resolved.faults, MATCHES_NOBODY)
    for line in lines_of(why.tree, 0):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def rebuild(organization: OfOrganization) -> None:
    """Read all customers anew; counts wait until it is done."""

    async def act(it: CommandContext) -> None:
        if not await lifecycle.rebuild(it.tx, it.organization_id):
            raise CommandError("The organization has no segments, so there is nothing to rebuild.")
        await it.record("segment.rebuild", "segments")

    run(organization, act)
    err.print("The worker builds it anew; `regulars segment count` answers when it is ready.", markup=False)


Ask = Callable[[Analysis, Database, UUID, Segment, SegmentQuery], Awaitable[Answer]]


def _ask(organization: str, segment_id: str, ask: Ask[Answer]) -> tuple[Segment, Answer]:
    """Ask the analysis process about a saved segment: that of a server beside us, or one for as long as it takes."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def work(pool: Database, settings: Settings) -> tuple[Segment, Answer]:
        async with pool.transaction() as tx:
            found = await find_organization(tx.connection, organization)
            segment = await manage.load_segment(tx, found.id, identifier)
            query = query_of(await resolve(tx, found.id, segment.definition.match))
        async with running(settings) as analysis:
            return segment, await ask(analysis, pool, found.id, segment, query)

    return run_on_pool(work)


async def _csv_rows(pool: Database, organization_id: UUID, profile_ids: Sequence[UUID]) -> list[list[str]]:
    async with pool.reading() as tx:
        found = {profile.id: profile for profile in await find_by_ids(tx, organization_id, profile_ids)}
    rows = []
    for profile in (found[identifier] for identifier in profile_ids if identifier in found):
        cells = (
            ids.PROFILE.encode(profile.id),
            profile.external_id,
            profile.first_name or "",
            profile.last_name or "",
            profile.phone_number or "",
            format_timestamp(profile.created_at),
        )
        rows.append([safe_cell(cell) for cell in cells])
    return rows
