"""The list of all commands, and what happens when one cannot go on."""

import sys
from typing import Annotated

import psycopg
import typer

from regulars.cli import (
    analysis,
    backup,
    config,
    consent,
    demo,
    doctor,
    import_,
    inbox,
    journey,
    key,
    message,
    migrating,
    organization,
    segment,
    serve,
    sms,
    user,
    version,
    webhook,
    work,
)
from regulars.cli.output import CommandError, Exit, err
from regulars.kit import log
from regulars.kit.durability import NotDurableError
from regulars.kit.log import scrub
from regulars.kit.migrate import MigrationError
from regulars.kit.settings import Settings, SettingsError
from regulars.kit.vault import VaultError
from regulars.postgres.errors import EmbeddedDatabaseError, ProgramsError
from regulars.processes.errors import InUseError

app = typer.Typer(
    name="regulars",
    help="Customers, shops, sales and SMS consent of a retailer: ingested exactly once, kept provably, self-hosted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(serve.serve)
app.command("serve-process", hidden=True)(serve.serve_process)
app.command()(work.worker)
app.command(hidden=True)(analysis.analysis)
app.command()(migrating.migrate)
app.command()(doctor.doctor)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(config.config)
app.command()(demo.demo)
app.command("import")(import_.import_file)
app.add_typer(organization.app, name="organization")
app.add_typer(key.app, name="key")
app.add_typer(consent.app, name="consent")
app.add_typer(message.app, name="message")
app.add_typer(segment.app, name="segment")
app.add_typer(inbox.app, name="inbox")
app.add_typer(journey.app, name="journey")
app.add_typer(sms.app, name="sms")
app.add_typer(webhook.app, name="webhook")
app.add_typer(user.app, name="user")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version.running())
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    # What a library or a lower room has to say goes to stderr from the first word on: stdout is for data.
    log.configure(Settings())


def main() -> None:
    """Run the command; what an operator can repair is told in one sentence, only our own mistakes give a traceback."""
    try:
        app()
    except SystemExit as ended:
        if ended.code == Exit.INTERRUPTED:
            _say("Interrupted.")
        raise
    except CommandError as error:
        _end(error, error.code)
    except InUseError as error:
        _end(error, Exit.FAILED)
    except VaultError as error:
        _end(error, Exit.USAGE)
    except SettingsError as error:
        # Not scrubbed: it never shows the value of a secret, and its examples look like one.
        _say(str(error))
        sys.exit(Exit.USAGE)
    except (EmbeddedDatabaseError, ProgramsError, MigrationError, NotDurableError) as error:
        _end(error, Exit.DATABASE)
    except psycopg.Error as error:
        _end(f"The database refused: {' '.join(str(error).split())}.", Exit.DATABASE)
    except KeyboardInterrupt:
        _end("Interrupted.", Exit.INTERRUPTED)


def _end(sentence: object, code: Exit) -> None:
    _say(scrub(str(sentence)))
    sys.exit(code)


def _say(sentence: str) -> None:
    err.print(f"regulars: {sentence}", markup=False)
