"""What happens when a command cannot go on."""

import sys

import psycopg
import typer

from regulars.cli.output import CommandError, Exit, err
from regulars.kit.durability import NotDurableError
from regulars.kit.log import scrub
from regulars.kit.migrate import MigrationError
from regulars.kit.releases import OutdatedReleaseError
from regulars.kit.settings import SettingsError
from regulars.kit.vault import VaultError
from regulars.postgres.errors import EmbeddedDatabaseError, ProgramsError
from regulars.processes.errors import InUseError


def run(app: typer.Typer) -> None:
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
    except (EmbeddedDatabaseError, ProgramsError, MigrationError, OutdatedReleaseError, NotDurableError) as error:
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
