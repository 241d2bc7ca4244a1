"""`regulars analysis`: the process that counts segments; `regulars serve` starts it."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from regulars.cli import database, error_handling
from regulars.cli.output import CommandError
from regulars.columns.protocol import socket_path
from regulars.kit import log, vault
from regulars.kit.releases import ProcessRole
from regulars.kit.settings import Settings
from regulars.processes import in_use


def analysis(
    lifeline: Annotated[int | None, typer.Option(help="File descriptor that closes when the parent exits.")] = None,
    socket: Annotated[Path | None, typer.Option(help="Path of the socket to listen on.")] = None,
) -> None:
    settings = log.load_for_service()
    # Imported here, so that no other command, and above all not the server, loads NumPy and Polars.
    engine = importlib.import_module("regulars.analysis.server")
    with database.opened(settings) as url, in_use.shared_lock(url) as registration:
        database.check_schema(url, ProcessRole.SERVER)
        registration.publish_key_fingerprint(vault.of(vault.with_key(settings, may_create_key=False)).fingerprint)
        try:
            engine.run(settings, url, path=socket or socket_path(settings), lifeline=lifeline)
        except PermissionError as error:
            raise CommandError(str(error)) from error


def main() -> None:
    """Run this command without loading the others."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback()(_configure_log)
    app.command("analysis")(analysis)
    error_handling.run(app)


def _configure_log() -> None:
    log.configure(Settings())
