"""End a failed command with one sentence and an exit code if an operator can fix the error, else with a traceback."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import typer

from regulars.cli.output import CommandError, ExitCode, err
from regulars.kit import log
from regulars.kit.log import scrub

# Errors that an operator can fix, by class name: importing the classes would load modules that most commands do not
# need.
EXIT_CODE_BY_ERROR: Final = {
    "psycopg.Error": ExitCode.DATABASE,
    "regulars.postgres.errors.EmbeddedDatabaseError": ExitCode.DATABASE,
    "regulars.postgres.errors.ProgramsError": ExitCode.DATABASE,
    "regulars.kit.migrate.MigrationError": ExitCode.DATABASE,
    "regulars.kit.releases.OutdatedReleaseError": ExitCode.DATABASE,
    "regulars.kit.db_checks.NotDurableError": ExitCode.DATABASE,
    "regulars.kit.db_checks.TransactionPoolerError": ExitCode.DATABASE,
    "regulars.kit.settings.SettingsError": ExitCode.USAGE,
    "regulars.kit.vault.VaultError": ExitCode.USAGE,
    "regulars.processes.in_use.InUseError": ExitCode.FAILED,
    "regulars.processes.listening.PortError": ExitCode.FAILED,
    "regulars.kit.refusals.Refused": ExitCode.FAILED,
    "regulars.organizations.settings.NameTaken": ExitCode.FAILED,
    "regulars.organizations.settings.ForeignZone": ExitCode.USAGE,
    "regulars.analytics.query.QueryRefused": ExitCode.USAGE,
    "regulars.columns.protocol.NotReady": ExitCode.FAILED,
    "regulars.columns.protocol.AnalysisUnavailable": ExitCode.FAILED,
    "regulars.columns.protocol.CursorExpired": ExitCode.FAILED,
    "regulars.demo.load.RealProviderError": ExitCode.FAILED,
}
# An option of the processes that a server starts.
CHILD_OPTION: Final = "--lifeline"
# A signal whose exception Python ignored is sent again after this time.
SEND_AGAIN_S: Final = 0.05

_log = log.get(__name__)


class Terminated(KeyboardInterrupt):
    """SIGTERM was received. It derives from KeyboardInterrupt, so that the driver cancels the running statement."""


def run(app: typer.Typer) -> None:
    """Run the command and handle its errors."""
    try:
        with _terminable():
            app()
    except SystemExit as ended:
        if ended.code == ExitCode.INTERRUPTED:
            _print_sentence("Interrupted.")
        raise
    except CommandError as error:
        _end(error, error.code)
    except Terminated:
        if CHILD_OPTION in sys.argv:
            # The parent ended this process, perhaps before it knew how to log.
            sys.exit(ExitCode.TERMINATED)
        _end("Terminated.", ExitCode.TERMINATED)
    except KeyboardInterrupt:
        _end("Interrupted.", ExitCode.INTERRUPTED)
    except Exception as error:
        if not _explain(error):
            raise


def _explain(error: Exception) -> bool:
    """End the command with a sentence; return False if only a traceback, which Python prints, explains the error."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__]
    error_name = next((name for name in names if name in EXIT_CODE_BY_ERROR), None)
    if error_name is None:
        if not log.writes_json():
            return False
        _log.critical("command.crashed", exc_info=error)
        sys.exit(ExitCode.FAILED)
    if error_name == "psycopg.Error":
        _end(f"The database refused: {' '.join(str(error).split())}.", ExitCode.DATABASE)
    if error_name == "regulars.kit.settings.SettingsError":
        # The message is not scrubbed: it never contains the value of a secret, and its examples look like secrets.
        _print_sentence(str(error))
        sys.exit(ExitCode.USAGE)
    _end(error, EXIT_CODE_BY_ERROR[error_name])
    return True


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

    def send_again(ignored: "sys.UnraisableHookArgs") -> None:
        """Python ignores exceptions in callbacks of its own, such as the one at the end of an import."""
        nonlocal is_terminated
        if ignored.exc_type is not Terminated:
            previous_hook(ignored)
            return
        is_terminated = False
        again = threading.Timer(SEND_AGAIN_S, os.kill, [os.getpid(), signal.SIGTERM])
        again.daemon = True
        again.start()

    previous_handler = signal.signal(signal.SIGTERM, terminate)
    previous_hook, sys.unraisablehook = sys.unraisablehook, send_again
    try:
        yield
    except SystemExit:
        # Typer has turned `Terminated` into SystemExit.
        if is_terminated:
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
        sys.unraisablehook = previous_hook


def _end(sentence: object, code: ExitCode) -> None:
    _print_sentence(scrub(str(sentence)))
    sys.exit(code)


def _print_sentence(sentence: str) -> None:
    if log.writes_json():
        _log.error("command.failed", reason=sentence)
        return
    err.print(f"regulars: {sentence}", markup=False)
