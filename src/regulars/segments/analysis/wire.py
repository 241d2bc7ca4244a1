"""How questions and answers travel: each is a length and a MessagePack document, on a socket of this machine."""

import asyncio
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from regulars.kit.settings import Settings

LENGTH_BYTES: Final = 4
MESSAGE_BYTES_MAX: Final = 16 << 20
# The kernel takes no longer address of a socket.
_PATH_CHARACTERS_MAX: Final = 100


def socket_path(settings: Settings) -> Path:
    """Where the analysis process of this data folder listens.

    A data folder that cannot be written, or whose name is too long for a socket, has a private folder among the
    temporary files instead.
    """
    path = settings.data_dir / "run" / "analysis.sock"
    if len(str(path)) <= _PATH_CHARACTERS_MAX and os.access(settings.data_dir, os.W_OK):
        return path
    name = hashlib.sha256(str(settings.data_dir).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"regulars-{os.geteuid()}-{name}" / "analysis.sock"


def make_folder(folder: Path) -> None:
    """Make the private folder of the socket. One that another process of this user made with more rights loses them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(folder)
    folder.chmod(0o700)


def check_owner(folder: Path) -> None:
    """Refuse a folder that another user of this machine made.

    The folder for temporary files is shared: who makes our folder there first could answer in our place.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"The folder {folder} of the analysis socket belongs to another user; remove it.")


async def read_message(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if size > MESSAGE_BYTES_MAX:
        raise ConnectionError("a message is longer than any")
    return await reader.readexactly(size)


async def write_message(writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
    await writer.drain()
