"""`regulars segment`: definitions from files, exact counts, members, and why somebody is in or out."""

import asyncio
import csv
import getpass
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec
import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database
from regulars.cli.organization import find_organization
from regulars.cli.output import CommandError, Exit, err, out, print_json, print_table, shown_time
from regulars.cli.segment_shown import (
    as_data,
    faults_as_data,
    figures_as_data,
    lines_of,
    size_as_data,
    size_cells,
    tree_as_data,
)
from regulars.cli.transact import AsJson, OfOrganization, read_id, transact
from regulars.kit import ids, settings
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.text import safe_cell
from regulars.profiles.browse.search import find_by_ids
from regulars.profiles.find import find_profile
from regulars.segments.analysis.ask import Analysis, running
from regulars.segments.analysis.follow import follow
from regulars.segments.analysis.model import AnalysisAway, Asked, Figures, NotReady, Renumbered
from regulars.segments.columns import life
from regulars.segments.definition import Definition, read_definition, schema
from regulars.segments.errors import SegmentError
from regulars.segments.explain import Why, explain
from regulars.segments.kept import manage
from regulars.segments.kept.asked import asked_of
from regulars.segments.kept.model import Segment, SegmentRow, SizeRow
from regulars.segments.kept.resolve import resolve
from regulars.segments.kept.sizes import find_last_sizes, keep_size

app = typer.Typer(no_args_is_help=True, help="Customers described by conditions, counted exactly.")

Answer = TypeVar("Answer")
PAGE = 1_000
# A command has the patience of whoever waits for it; the first count after a start reads columns.
PATIENCE_S = 120.0
TheSegment = Annotated[str, typer.Argument(metavar="ID", help="The id that `segment list` shows.", show_default=False)]
TheFile = Annotated[Path, typer.Argument(metavar="FILE.json", help="The definition.", show_default=False)]
CSV_HEADER = ("id", "external_id", "first_name", "last_name", "phone_number", "created_at")


@app.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a definition."""
    out.print(schema().decode(), markup=False, end="")


@app.command()
def create(organization: OfOrganization, file: TheFile, as_json: AsJson = False) -> None:
    """Save a definition; whatever is wrong with it is said with its place, and nothing is saved."""
    definition = _read(file)

    async def act(tx: Tx, organization_id: UUID) -> Segment:
        saved = await manage.create_segment(tx, organization_id, definition, created_by=getpass.getuser())
        await record(tx, organization_id, OPERATOR, "segment.create", saved.id, after={"version": 1})
        return saved

    _show_saved(_run(organization, act), as_json=as_json)


@app.command()
def update(organization: OfOrganization, segment_id: TheSegment, file: TheFile, as_json: AsJson = False) -> None:
    """Save a new version; whoever uses the segment follows it from now on."""
    definition, identifier = _read(file), read_id(ids.SEGMENT, segment_id)

    async def act(tx: Tx, organization_id: UUID) -> Segment:
        saved = await manage.update_segment(tx, organization_id, identifier, definition, created_by=getpass.getuser())
        after = {"version": saved.row.version}
        await record(tx, organization_id, OPERATOR, "segment.update", saved.id, after=after)
        return saved

    _show_saved(_run(organization, act), as_json=as_json)


@app.command()
def delete(organization: OfOrganization, segment_id: TheSegment) -> None:
    """Delete a segment that nothing uses."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def act(tx: Tx, organization_id: UUID) -> SegmentRow:
        row = await manage.delete_segment(tx, organization_id, identifier)
        await record(tx, organization_id, OPERATOR, "segment.delete", segment_id, before={"version": row.version})
        return row

    row = _run(organization, act)
    err.print(f"{row.name} is deleted.", markup=False)


@app.command("list")
def list_all(organization: OfOrganization, as_json: AsJson = False) -> None:
    """List the segments, the one changed last first, with their last counts."""

    async def act(tx: Tx, organization_id: UUID) -> tuple[list[SegmentRow], dict[UUID, SizeRow]]:
        rows = await manage.list_segments(tx, organization_id)
        return rows, await find_last_sizes(tx, organization_id, [row.id for row in rows])

    rows, sizes = _run(organization, act)
    if as_json:
        print_json([{**as_data(row), "last_count": size_as_data(sizes.get(row.id))} for row in rows])
        return
    print_table(
        ["ID", "NAME", "VERSION", "CHANGED (UTC)", "CUSTOMERS", "MAY BE TEXTED", "COUNTED (UTC)"],
        [
            [
                ids.SEGMENT.encode(row.id),
                row.name,
                str(row.version),
                shown_time(row.updated_at),
                *size_cells(sizes.get(row.id)),
            ]
            for row in rows
        ],
    )


@app.command()
def show(
    organization: OfOrganization,
    segment_id: TheSegment,
    version: Annotated[int | None, typer.Option(min=1, help="An earlier version.")] = None,
) -> None:
    """Show a segment: its definition, and what makes it match nobody."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def act(tx: Tx, organization_id: UUID) -> Segment:
        return await manage.load_segment(tx, organization_id, identifier, version=version)

    found = _run(organization, act)
    print_json(
        {
            **as_data(found.row),
            "definition": msgspec.to_builtins(found.definition),
            "faults": faults_as_data(found.faults),
        }
    )


@app.command()
def count(organization: OfOrganization, segment_id: TheSegment, as_json: AsJson = False) -> None:
    """Count the customers of a segment now, and how many of them may be texted."""

    async def ask(analysis: Analysis, pool: Database, organization_id: UUID, segment: Segment, asked: Asked) -> Figures:
        found = await analysis.figures(organization_id, asked, deadline_s=PATIENCE_S)
        async with pool.transaction() as tx:
            await keep_size(
                tx,
                organization_id,
                segment.row.id,
                version=segment.row.version,
                total=found.total,
                may_be_texted=found.split.may_be_texted,
            )
        return found

    segment, figures = _ask(organization, segment_id, ask)
    for fault in segment.faults:
        err.print(f"It matches nobody: {fault.place}: {fault.message}", style="yellow", markup=False)
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
    segment_id: TheSegment,
    as_csv: Annotated[bool, typer.Option("--csv", help="Names and numbers too, as a CSV file.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="How many at most.")] = None,
) -> None:
    """List the customers of a segment by their canonical ids."""
    writer = csv.writer(sys.stdout)

    async def ask(analysis: Analysis, pool: Database, organization_id: UUID, segment: Segment, asked: Asked) -> int:
        if as_csv:
            writer.writerow(CSV_HEADER)
        written = 0
        wanted = PAGE if limit is None else min(PAGE, limit)
        first = await analysis.members(organization_id, asked, limit=wanted, deadline_s=PATIENCE_S)
        async for found in follow(analysis, organization_id, asked, first, limit=PAGE, deadline_s=PATIENCE_S):
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
    segment_id: TheSegment,
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="The customer: external_id or prof_ id.")],
    as_json: AsJson = False,
) -> None:
    """Say why a customer is in or out, from their own rows."""
    identifier = read_id(ids.SEGMENT, segment_id)

    async def act(tx: Tx, organization_id: UUID) -> Why | None:
        segment = await manage.load_segment(tx, organization_id, identifier)
        found = await find_profile(tx, organization_id, ids.read_reference(ids.PROFILE, profile))
        return None if found is None else await explain(tx, organization_id, segment.definition.match, found.id)

    why = _run(organization, act)
    if why is None:
        raise CommandError(f"There is no customer {profile}.")
    if as_json:
        print_json({"is_in": why.is_in, "faults": faults_as_data(why.resolved.faults), "why": tree_as_data(why.tree)})
        return
    out.print("in" if why.is_in else "out", markup=False)
    for fault in why.resolved.faults:
        err.print(f"It matches nobody: {fault.place}: {fault.message}", style="yellow", markup=False)
    for line in lines_of(why.tree, 0):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def rebuild(organization: OfOrganization) -> None:
    """Read all customers anew; counts wait until it is done."""

    async def act(tx: Tx, organization_id: UUID) -> bool:
        return await life.rebuild(tx, organization_id)

    if not _run(organization, act):
        raise CommandError("The organization has no segments, so there is nothing to rebuild.")
    err.print("The worker builds it anew; `regulars segment count` answers when it is ready.", markup=False)


def _run(organization: str, act: Callable[[Tx, UUID], Awaitable[Answer]]) -> Answer:
    with database.ready(settings.load()) as url:
        return transact(url, organization, act, refusals=(SegmentError,))


Ask = Callable[[Analysis, Database, UUID, Segment, Asked], Awaitable[Answer]]


def _ask(organization: str, segment_id: str, ask: Ask[Answer]) -> tuple[Segment, Answer]:
    """Ask the analysis process about a saved segment: that of a server beside us, or one for as long as it takes."""
    identifier, loaded = read_id(ids.SEGMENT, segment_id), settings.load()
    with database.ready(loaded) as url:

        async def work() -> tuple[Segment, Answer]:
            async with database.pool(url) as pool:
                async with pool.transaction() as tx:
                    found = await find_organization(tx.connection, organization)
                    segment = await manage.load_segment(tx, found.id, identifier)
                    asked = asked_of(await resolve(tx, found.id, segment.definition.match))
                async with running(loaded) as analysis:
                    return segment, await ask(analysis, pool, found.id, segment, asked)

        try:
            return asyncio.run(work())
        except SegmentError as error:
            raise CommandError(str(error)) from error
        except (NotReady, AnalysisAway, Renumbered) as error:
            raise CommandError(str(error), code=Exit.FAILED) from error


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


def _read(file: Path) -> Definition:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CommandError(f"The file {file} cannot be read: {error.strerror}.", code=Exit.USAGE) from error
    try:
        return read_definition(content)
    except SegmentError as error:
        raise CommandError(str(error)) from error


def _show_saved(segment: Segment, *, as_json: bool) -> None:
    if as_json:
        print_json({**as_data(segment.row), "faults": faults_as_data(segment.faults)})
        return
    out.print(segment.id, markup=False)
    for fault in segment.faults:
        err.print(
            f"It matches nobody until this is mended: {fault.place}: {fault.message}", style="yellow", markup=False
        )
