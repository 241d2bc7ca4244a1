"""Find the address of the server and the name of this command, for the links and hints that commands print."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from regulars.kit.db import Tx
from regulars.kit.settings import Settings, load
from regulars.organizations.public_address import find_stored_address
from regulars.processes import serve_lock

_NAME: Final = "regulars"


async def find_address(tx: Tx, settings: Settings | None = None) -> str:
    """The public address; without one, where `regulars serve` runs on this machine; else where it would."""
    settings = settings or load()
    return settings.public_url or await find_stored_address(tx) or find_address_here(settings)


def find_address_here(settings: Settings) -> str:
    """The address that is known without a database."""
    return settings.public_url or serve_lock.find_address(settings.data_dir) or settings.own_url


def find_command() -> str:
    """What a user has typed to run `regulars`: its name if the shell finds this one, else its path."""
    script = Path(sys.argv[0])
    if script.name != _NAME:
        return f"{sys.executable} -m regulars.cli" if script.name == "__main__.py" else _NAME
    found = shutil.which(_NAME)
    if found is not None and os.path.realpath(found) == os.path.realpath(script):
        return _NAME
    return str(script)
