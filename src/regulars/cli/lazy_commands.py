"""Import the module of a command only when the command is called, so that every command starts quickly."""

import importlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from regulars.cli.start_steps import loading


def load_function(target: str) -> Any:
    """Import `module:name`, of a module of this package."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(f"regulars.cli.{module}"), name)


class LazyCommand(NamedTuple):
    """A command that is not imported yet. `target` names a function, or a `Typer` for a group."""

    target: str
    help: str
    hidden: bool = False
    # Whether the import is long enough to say so.
    is_slow: bool = False

    def load(self, name: str) -> Any:
        with loading() if self.is_slow else nullcontext():
            loaded = load_function(self.target)
        parent = typer.Typer()
        if isinstance(loaded, typer.Typer):
            parent.add_typer(loaded, name=name, help=self.help)
        else:
            parent.command(name, help=self.help, hidden=self.hidden)(loaded)
        return typer.main.get_group(parent).commands[name]


def _spare_conversions(ctx: Any, command: Any) -> None:
    """Pass strings, defaults and absent values on unchanged, and let Typer convert all others: it imports pydantic for
    that, which takes as long as importing the database driver."""
    for subcommand in getattr(command, "commands", {}).values():
        _spare_conversions(ctx, subcommand)
    for param in command.get_params(ctx):
        param.process_value = partial(_process_value, param, param.process_value)


def _process_value(param: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    if value is None and not param.required:
        value = () if param.multiple or param.nargs == -1 else None
    elif type(value) is not param.type_descriptor.annotation:
        return convert(ctx, value)
    return value if param.callback is None else param.callback(ctx, param, value)


class _LazyGroup(TyperGroup):
    lazy_commands: ClassVar[Mapping[str, LazyCommand]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, lazy in self.lazy_commands.items():
            self.add_command(TyperCommand(name, help=lazy.help, hidden=lazy.hidden))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _spare_conversions(ctx, self)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, placeholder, remaining = super().resolve_command(ctx, args)
        lazy = self.lazy_commands.get(name or "")
        command = placeholder if lazy is None else lazy.load(str(name))
        if command is not None:
            _spare_conversions(ctx, command)
        return name, command, remaining


def lazy_group(lazy_commands: Mapping[str, LazyCommand]) -> type[TyperGroup]:
    """Return a class for `Typer(cls=...)` that lists these commands with their help and imports only the called one."""
    return type("LazyGroup", (_LazyGroup,), {"lazy_commands": lazy_commands})
