"""`regulars import`: import a file of sales, customers, stores or consents, and write rejected rows to another file."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Self, cast

import msgspec
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database, database_pool
from regulars.cli.output import CommandError, ExitCode, err, format_count, print_json, print_table
from regulars.cli.runner import AsJson, OfOrganization, find_organization
from regulars.imports.file_reader import FORMATS, Format, read_file
from regulars.imports.mapping import load_mapping, write_mapping
from regulars.imports.model import FileError, FileRow, ImportKind, ImportReport, RowOutcome
from regulars.imports.row_writer import Target
from regulars.imports.run import run_import
from regulars.kit import settings
from regulars.kit.db import Database
from regulars.kit.errors import ApiError
from regulars.organizations import manage
from regulars.texts.in_flight import wait_for_texts_in_flight

STANDARD_INPUT: Final = "-"
REJECTED_SUFFIX: Final = ".rejected.ndjson"
REJECTED_SHOWN_MAX: Final = 5
IGNORED_SHOWN_MAX: Final = 10

OfKind = Annotated[ImportKind, typer.Argument(help="Kind of the rows.", show_default=False)]
FromFile = Annotated[
    str,
    typer.Argument(
        help="NDJSON, CSV with a header, or a spreadsheet, also compressed with gzip; - is standard input.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Run every batch of rows and roll it back: shows what each row would change, without the effects of"
        " earlier batches of the file.",
    ),
]
FileFormat = Annotated[
    str | None,
    typer.Option("--format", help="ndjson, csv or xlsx; default: detected.", show_default=False),
]
Pairs = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="COLUMN=FIELD",
        help="Column of the file and its field, such as Ticket=external_id; Ticket= ignores it. May be repeated.",
        show_default=False,
    ),
]
MappingFile = Annotated[Path | None, typer.Option(help="Saved mapping; other options win.", show_default=False)]
SaveMapping = Annotated[Path | None, typer.Option(help="Save the mapping to this file.", show_default=False)]
AmountsAs = Annotated[
    str | None,
    typer.Option(help="cents, or decimal: 89,00 and 89.00 are 8900 cents; default: cents.", show_default=False),
]
Zone = Annotated[
    str | None,
    typer.Option(
        help="Time zone of times without an offset, such as Europe/Paris; allows dates with the day first.",
        show_default=False,
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a spreadsheet; default: the first.", show_default=False)]
RejectedTo = Annotated[
    Path | None,
    typer.Option(help="File for rejected rows and reasons; default: FILE.rejected.ndjson.", show_default=False),
]


def import_file(
    kind: OfKind,
    file: FromFile,
    *,
    organization: OfOrganization,
    dry_run: DryRun = False,
    file_format: FileFormat = None,
    pairs: Pairs = None,
    mapping: MappingFile = None,
    save_mapping: SaveMapping = None,
    amounts: AmountsAs = None,
    timezone: Zone = None,
    sheet: Sheet = None,
    rejected: RejectedTo = None,
    as_json: AsJson = False,
) -> None:
    if file_format not in {None, *FORMATS}:
        raise CommandError("--format must be ndjson, csv or xlsx.", code=ExitCode.USAGE)
    loaded = settings.load()
    try:
        column_mapping = load_mapping(mapping, pairs or (), amounts=amounts, timezone=timezone, sheet=sheet)
        if save_mapping is not None:
            write_mapping(save_mapping, column_mapping)
    except FileError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from None
    rejections = _RejectedRows(rejected or Path(("import" if file == STANDARD_INPUT else file) + REJECTED_SUFFIX))
    with _open_stream(file) as stream, database.ready(loaded) as url, rejections:
        try:
            parsed = read_file(stream, kind, cast("Format | None", file_format), column_mapping)
            for remark in parsed.remarks:
                err.print(remark, markup=False)
            report = database_pool.run_on_pool(
                url,
                lambda pool: _import_rows(
                    pool, organization, kind, parsed.rows, loaded, stream=stream, dry_run=dry_run, rejections=rejections
                ),
            )
        except (FileError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CommandError(_describe_file_error(error), code=ExitCode.USAGE) from None
    report.ignored.update(dict.fromkeys(parsed.ignored_columns, report.rows))
    _print_report(report, dry_run=dry_run, as_json=as_json)
    rejected_rows = report.counts[RowOutcome.REJECTED]
    if rejected_rows:
        rejections.print_first()
        were = "was" if rejected_rows == 1 else "were"
        raise CommandError(f"{format_count(rejected_rows, 'row')} {were} rejected; {rejections.path} says why.")


def _describe_file_error(error: Exception) -> str:
    return str(error) if isinstance(error, FileError) else f"The compressed file is damaged or truncated: {error}."


async def _import_rows(
    pool: Database,
    name: str,
    kind: ImportKind,
    rows: Iterator[FileRow],
    loaded: settings.Settings,
    *,
    stream: io.BufferedReader,
    dry_run: bool,
    rejections: "_RejectedRows",
) -> ImportReport:
    async with pool.connection() as connection:
        organization = await find_organization(connection, name)
        secret_and_country = await manage.find_secret_and_country(connection, organization.id)
    target = Target(
        organization_id=organization.id,
        secret=secret_and_country.secret,
        default_country=secret_and_country.default_country or loaded.default_country,
        tolerance=timedelta(seconds=loaded.occurred_at_tolerance_s),  # a sale may be this far in the future
    )
    with _progress(f"{kind.value} (dry run)" if dry_run else kind.value, stream) as on_progress:
        report = await run_import(
            pool,
            kind,
            rows,
            target,
            dry_run=dry_run,
            on_rejected=rejections.add,
            on_progress=on_progress,
        )
    if not dry_run:
        after = {"rows": report.rows, "rejected": report.counts[RowOutcome.REJECTED]}
        async with pool.transaction() as tx:
            await record(tx, organization.id, OPERATOR, "import.run", kind.value, after=after)
    if kind is ImportKind.CONSENTS and not dry_run:
        # A file may withdraw consents: the command ends only when no text to these numbers is being sent any more.
        await wait_for_texts_in_flight(pool, organization.id)
    return report


@contextmanager
def _progress(title: str, stream: io.BufferedReader) -> Iterator[Callable[[int], None]]:
    """Show the position in the file; standard input has no known length, so its bar shows only activity."""
    size = os.fstat(stream.fileno()).st_size if stream.seekable() else None
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]:,} rows"))
    with Progress(*columns, TimeElapsedColumn(), console=err) as progress:
        bar = progress.add_task(title, total=size, rows=0)
        rows = 0

        def advance(count: int) -> None:
            nonlocal rows
            rows += count
            progress.update(bar, rows=rows, completed=None if size is None else stream.tell())

        yield advance


class _RejectedRows:
    """The file of rejected rows. It is created for the first rejected row, and readable only by its owner, because it
    has personal data."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._first_lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as os_error:
                raise self._write_error(os_error) from None

    def add(self, row: FileRow, error: ApiError) -> None:
        if self._file is None:
            self._file = self._create()
        if len(self._first_lines) < REJECTED_SHOWN_MAX:
            self._first_lines.append(describe_rejection(row, error))
        entry = {
            "row": row.number,
            "code": error.code,
            "detail": error.detail,
            "errors": error.errors,
            "input": _input_as_json(row.body),
        }
        try:
            self._file.write(msgspec.json.encode(entry) + b"\n")
        except OSError as os_error:
            raise self._write_error(os_error) from None

    def print_first(self) -> None:
        """Print the first rejected rows, each with its reason."""
        for line in self._first_lines:
            err.print(line, markup=False)

    def _create(self) -> BinaryIO:
        try:
            return os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        except OSError as os_error:
            raise self._write_error(os_error) from None

    def _write_error(self, error: OSError) -> CommandError:
        return CommandError(
            f"Rejected rows cannot be written to {self.path}: {error.strerror}; name another file with --rejected.",
            code=ExitCode.USAGE,
        )


def describe_rejection(row: FileRow, error: ApiError) -> str:
    """Return a line such as `Row 3: total_amount_cents: It must be a whole number.`"""
    faults = "; ".join(f"{fault.field}: {fault.message}" for fault in error.errors if fault.field)
    return f"Row {row.number}: {faults or error.detail}"


@contextmanager
def _open_stream(file: str) -> Iterator[io.BufferedReader]:
    if file == STANDARD_INPUT:
        yield cast("io.BufferedReader", sys.stdin.buffer)
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115  # closed below; opening is what may fail
    except OSError as error:
        raise CommandError(f"The file {file} cannot be read: {error.strerror}.", code=ExitCode.USAGE) from None
    with stream:
        yield stream


def _input_as_json(body: bytes) -> object:
    """Return the row unchanged, so that it can be corrected and imported again; as a string if it is not JSON."""
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return body.decode(errors="replace")
    return msgspec.Raw(body)


def _print_report(report: ImportReport, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({**report.as_data(), "dry_run": dry_run})
        return
    counts = {name: count for name, count in report.as_data().items() if name != "ignored"}
    cells = [[name, f"{count:,}"] for name, count in counts.items() if count or name == "rows"]
    cells += [[f"{name} ignored", f"{count:,}"] for name, count in report.ignored.most_common(IGNORED_SHOWN_MAX)]
    print_table(["WOULD BE" if dry_run else "WERE", "ROWS"], cells)
