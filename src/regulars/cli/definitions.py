"""The commands that segments, journeys and campaigns share: save a definition from a JSON file, list and show them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar
from uuid import UUID

import msgspec
import typer

from regulars.cli.member import AsMember, find_changer
from regulars.cli.output import Column, CommandError, ExitCode, err, out, pick, print_json, print_outcome, print_rows
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, bind, read_id, run
from regulars.conditions.check import Fault
from regulars.kit.db import Tx
from regulars.kit.ids import IdKind

Definition = TypeVar("Definition")

TheId = Annotated[str, typer.Argument(metavar="ID", help="The id, as `list` shows it.", show_default=False)]
TheFile = Annotated[Path, typer.Argument(metavar="FILE.json", help="File with the definition.", show_default=False)]
AVersion = Annotated[int | None, typer.Option(min=1, help="Number of an earlier version.")]


class StoredVersion(Protocol):
    """A stored version of a definition, and its current faults."""

    @property
    def row(self) -> Any: ...

    @property
    def definition(self) -> Any: ...

    @property
    def faults(self) -> Sequence[Fault]: ...


Version = TypeVar("Version", bound=StoredVersion)


@dataclass(frozen=True, kw_only=True)
class DefinitionCommands(Generic[Definition, Version]):
    """The commands `schema`, `create`, `update`, `list` and `show` for one kind of definition."""

    kind: IdKind
    schema: Callable[[], bytes]
    read: Callable[[bytes], Definition]
    # Called with (tx, organization_id, [id,] definition, created_by=...); `load` with (…, id, version=...).
    save_new: Callable[..., Awaitable[Version]]
    save_version: Callable[..., Awaitable[Version]]
    load: Callable[..., Awaitable[Version]]
    find_all: Callable[[CommandContext], Awaitable[list[dict[str, Any]]]]
    columns: Sequence[Column]
    # For the audit log: the names of the acts of `create` and `update`, and the columns to record.
    acts: tuple[str, str]
    recorded: tuple[str, ...]
    # The consequence of a fault, such as `It cannot run yet`.
    consequence: str
    # Returns the values to print instead of columns of the row.
    decode: Callable[[Any], dict[str, Any]] = lambda _row: {}

    def add_to(self, app: typer.Typer, *, create: str, update: str, list_: str, show: str) -> None:
        """Add the commands, each with its help."""
        app.command("schema", help="Print the JSON Schema of a definition.")(self._schema)
        app.command("create", help=create)(self._create)
        app.command("update", help=update)(self._update)
        app.command("list", help=list_)(self._list)
        app.command("show", help=show)(self._show)

    def row_as_data(self, row: Any) -> dict[str, Any]:
        return {**row._asdict(), "id": self.kind.encode(row.id), **self.decode(row)}

    async def record(self, context: CommandContext, act: str, row: Any) -> None:
        await context.record(act, self.kind.encode(row.id), after=pick(row, *self.recorded))

    def change(
        self,
        organization: str,
        identifier: str,
        use_case: Callable[[Tx, UUID, UUID], Awaitable[Any]],
        act: str,
        sentence: str,
        *,
        as_json: bool,
    ) -> None:
        """Run a use case that returns the changed row; `sentence` may name values of the row."""
        row_id = read_id(self.kind, identifier)

        async def work(context: CommandContext) -> Any:
            row = await use_case(context.tx, context.organization_id, row_id)
            await self.record(context, act, row)
            return row

        data = self.row_as_data(run(organization, work))
        print_outcome(data, sentence.format_map(data), as_json=as_json)

    def _schema(self) -> None:
        out.print(self.schema().decode(), markup=False, end="")

    def _create(
        self, organization: OfOrganization, file: TheFile, member: AsMember = None, as_json: AsJson = False
    ) -> None:
        self._save(organization, file, self.save_new, act=self.acts[0], member=member, as_json=as_json)

    def _update(
        self,
        organization: OfOrganization,
        identifier: TheId,
        file: TheFile,
        member: AsMember = None,
        as_json: AsJson = False,
    ) -> None:
        row_id = read_id(self.kind, identifier)
        self._save(organization, file, self.save_version, row_id, act=self.acts[1], member=member, as_json=as_json)

    def _list(self, organization: OfOrganization, as_json: AsJson = False) -> None:
        print_rows(run(organization, self.find_all), self.columns, as_json=as_json)

    def _show(self, organization: OfOrganization, identifier: TheId, version: AVersion = None) -> None:
        row_id = read_id(self.kind, identifier)
        stored = run(organization, bind(self.load, row_id, version=version))
        definition = msgspec.to_builtins(stored.definition)
        print_json({**self.row_as_data(stored.row), "definition": definition, "faults": faults_as_data(stored.faults)})

    def _save(
        self,
        organization: str,
        file: Path,
        save: Callable[..., Awaitable[Version]],
        *row_id: UUID,
        act: str,
        member: str | None,
        as_json: bool,
    ) -> None:
        definition = self.read(_read_bytes(file))

        async def work(context: CommandContext) -> Version:
            by = await find_changer(context, member)
            saved = await save(context.tx, context.organization_id, *row_id, definition, created_by=by)
            await self.record(context, act, saved.row)
            return saved

        saved = run(organization, work)
        if as_json:
            print_json({**self.row_as_data(saved.row), "faults": faults_as_data(saved.faults)})
            return
        out.print(self.kind.encode(saved.row.id), markup=False)
        print_faults(saved.faults, self.consequence)


def faults_as_data(faults: Sequence[Fault]) -> list[dict[str, str]]:
    return [{"place": fault.place, "message": fault.message} for fault in faults]


def print_faults(faults: Sequence[Fault], consequence: str) -> None:
    for fault in faults:
        err.print(f"{consequence}: {fault.place}: {fault.message}", style="yellow", markup=False)


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CommandError(f"The file {file} cannot be read: {error.strerror}.", code=ExitCode.USAGE) from error
