"""End a failed command: one sentence and an exit code for errors that an operator can fix, else a traceback."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import typer

from regulars.cli.output import CommandError, Exit, err
from regulars.kit.log import scrub

# Errors that an operator can fix, by class name: importing the classes would load modules that most commands need not.
REPAIRABLE: Final = {
    "psycopg.Error": Exit.DATABASE,
    "regulars.postgres.errors.EmbeddedDatabaseError": Exit.DATABASE,
    "regulars.postgres.errors.ProgramsError": Exit.DATABASE,
    "regulars.kit.migrate.MigrationError": Exit.DATABASE,
    "regulars.kit.releases.OutdatedReleaseError": Exit.DATABASE,
    "regulars.kit.db_checks.NotDurableError": Exit.DATABASE,
    "regulars.kit.db_checks.TransactionPoolerError": Exit.DATABASE,
    "regulars.kit.settings.SettingsError": Exit.USAGE,
    "regulars.kit.vault.VaultError": Exit.USAGE,
    "regulars.processes.in_use.InUseError": Exit.FAILED,
    "regulars.accounts.errors.AccountRefusal": Exit.FAILED,
    "regulars.organizations.particulars.NameTaken": Exit.FAILED,
    "regulars.messaging.errors.MessagingError": Exit.FAILED,
    "regulars.segments.definition.SegmentError": Exit.FAILED,
    "regulars.segments.analysis.protocol.NotReady": Exit.FAILED,
    "regulars.segments.analysis.protocol.AnalysisUnavailable": Exit.FAILED,
    "regulars.segments.analysis.protocol.CursorExpired": Exit.FAILED,
    "regulars.journeys.errors.JourneyError": Exit.FAILED,
    "regulars.campaigns.errors.CampaignError": Exit.FAILED,
    "regulars.webhooks.errors.WebhookError": Exit.FAILED,
    "regulars.demo.load.RealProviderError": Exit.FAILED,
}


class Terminated(KeyboardInterrupt):
    """SIGTERM was received. It derives from KeyboardInterrupt, so that the driver cancels the running statement."""


def run(app: typer.Typer) -> None:
    """Run the command; errors that an operator can fix end in one sentence, programming errors in a traceback."""
    try:
        with _terminable():
            app()
    except SystemExit as ended:
        if ended.code == Exit.INTERRUPTED:
            _say("Interrupted.")
        raise
    except CommandError as error:
        _end(error, error.code)
    except KeyboardInterrupt as error:
        _end_interrupted(error)
    except Exception as error:
        names = [f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__]
        known = next((name for name in names if name in REPAIRABLE), None)
        if known is None:
            raise
        if known == "psycopg.Error":
            _end(f"The database refused: {' '.join(str(error).split())}.", Exit.DATABASE)
        if known == "regulars.kit.settings.SettingsError":
            # Not scrubbed: it never shows the value of a secret, and its examples look like one.
            _say(str(error))
            sys.exit(Exit.USAGE)
        _end(error, REPAIRABLE[known])


@contextmanager
def _terminable() -> Iterator[None]:
    """Handle SIGTERM like Ctrl+C: the command rolls back, releases its locks and stops the PostgreSQL it started.

    Servers and workers replace this handler once they run, and finish the work they have begun.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_terminated = False

    def terminate(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_terminated
        if not is_terminated:
            # A second signal must not interrupt the clean-up that the first one started.
            is_terminated = True
            raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except SystemExit:
        # Typer has turned the exception into an exit code.
        if is_terminated:
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
