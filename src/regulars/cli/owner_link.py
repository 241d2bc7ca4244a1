"""Hand the one-time link for the first owner to the operator; the log is not secret enough for it."""

import os
import sys
from pathlib import Path
from typing import Final

from regulars.accounts.links import LINK_PATH
from regulars.cli.output import out
from regulars.kit import log
from regulars.kit.settings import Settings

FILE_NAME: Final = "owner-link.txt"

_log = log.get(__name__)


def publish(settings: Settings, token: str | None, *, address: str) -> bool:
    """Print the link on a terminal, else write it to a file that the log names: who has it can become the owner.

    Return whether there is a file. Without a token there is a user already, and the file of an earlier start is
    removed.
    """
    path = settings.data_dir / FILE_NAME
    if token is None:
        remove(settings)
        return False
    link = f"{address}{LINK_PATH}/{token}"
    if sys.stdout.isatty() and not log.writes_json():
        out.print(f"Set up your organization (the link works once, for 24 hours): {link}", markup=False, soft_wrap=True)
        return False
    try:
        _write(path, link)
    except OSError as error:
        # Without a data folder, `regulars user create` makes the first user.
        _log.warning("server.owner_link_not_written", path=str(path), reason=error.strerror)
    else:
        _log.warning("server.has_no_user", owner_link_file=str(path))
        return True
    return False


def remove(settings: Settings) -> None:
    (settings.data_dir / FILE_NAME).unlink(missing_ok=True)


def _write(path: Path, link: str) -> None:
    """Write the file, readable by its owner only, also if it exists with other rights."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(f"{link}\n")
