"""What happens when a command cannot go on."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import psycopg
import typer

from regulars.cli.output import CommandError, Exit, err
from regulars.kit.durability import NotDurableError
from regulars.kit.log import scrub
from regulars.kit.migrate import MigrationError
from regulars.kit.pooler import TransactionPoolerError
from regulars.kit.releases import OutdatedReleaseError
from regulars.kit.settings import SettingsError
from regulars.kit.vault import VaultError
from regulars.postgres.errors import EmbeddedDatabaseError, ProgramsError
from regulars.processes.in_use import InUseError

DATABASE_ERRORS: Final = (
    EmbeddedDatabaseError,
    ProgramsError,
    MigrationError,
    OutdatedReleaseError,
    NotDurableError,
    TransactionPoolerError,
)


class Terminated(KeyboardInterrupt):
    """SIGTERM came. A kind of Ctrl+C, so that the driver cancels a statement that is running in the database."""


def run(app: typer.Typer) -> None:
    """Run the command; what an operator can repair is told in one sentence, only our own mistakes give a traceback."""
    try:
        with _unwound_by_sigterm():
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
    except DATABASE_ERRORS as error:
        _end(error, Exit.DATABASE)
    except psycopg.Error as error:
        _end(f"The database refused: {' '.join(str(error).split())}.", Exit.DATABASE)
    except KeyboardInterrupt as error:
        _end_interrupted(error)


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """End a command by SIGTERM as by Ctrl+C: it rolls back, gives up its locks and stops the PostgreSQL it started.

    Processes that serve or work set a handler of their own once they run, and finish what is under way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def unwind(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if not came:
            # A second signal must not break off what the first one has begun.
            came = True
            raise Terminated

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    except SystemExit:
        # The library of the command line has made an exit code of the interruption.
        if came:
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_interrupted(error: KeyboardInterrupt) -> None:
    if isinstance(error, Terminated):
        _end("Terminated.", Exit.TERMINATED)
    _end("Interrupted.", Exit.INTERRUPTED)


def _end(sentence: object, code: Exit) -> None:
    _say(scrub(str(sentence)))
    sys.exit(code)


def _say(sentence: str) -> None:
    err.print(f"regulars: {sentence}", markup=False)
