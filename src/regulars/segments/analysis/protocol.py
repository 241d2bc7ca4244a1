"""Requests to the analysis process and its responses, and the socket they travel on. Imports no numpy and no Polars."""

import asyncio
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path as FilePath
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from regulars.catalog.model import AttributeType
from regulars.conditions.tree import Group, Path
from regulars.kit.settings import Settings
from regulars.sales.model import Currency
from regulars.segments.columns.model import Progress

_PLACE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


class Split(msgspec.Struct, frozen=True):
    """How many may be texted, judged like `/v1/subscriptions/check`."""

    may_be_texted: int = 0
    withdrawn: int = 0
    never_asked: int = 0
    do_not_contact: int = 0


class ConditionCount(msgspec.Struct, frozen=True):
    """How many customers a condition or group holds for, and how many have a value that its type cannot read."""

    path: Path
    count: int
    unreadable: int = 0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All from one snapshot: they agree with each other."""

    total: int
    customers: int
    split: Split
    conditions: tuple[ConditionCount, ...]
    as_of: datetime
    took_ms: float


class Place(NamedTuple):
    """Where a page of members begins. Another build gives other numbers, so a number says nothing without its epoch."""

    epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


def read_place(text: str) -> Place | None:
    found = _PLACE.fullmatch(text)
    return None if found is None else Place(int(found[1]), int(found[2]))


# What a page of members may be sorted by, the largest first; by nothing, they come by their numbers.
Order = Literal["created", "last_purchase", "spend"]


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """A page of them; `total` is how many there are. Where they are sorted, `next` counts how many come before."""

    profile_ids: tuple[UUID, ...]
    total: int = 0
    next: Place | None
    as_of: datetime


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A definition with what it stands on: how its keys are read, which stores it names, and the other segments."""

    match: Group
    attributes: Mapping[str, tuple[AttributeType, tuple[str, ...]]] = {}
    properties: Mapping[str, tuple[AttributeType, tuple[str, ...]]] = {}
    stores: Mapping[str, UUID] = {}
    # By the id that stands in the conditions; one with a fault, in which nobody is, is None.
    segments: Mapping[str, Group | None] = {}
    zone: str
    today: date
    # Nobody is in a segment with a fault, whatever its conditions say.
    is_faulty: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    organization_id: UUID
    asked: Asked
    want: Literal["figures", "members", "sample", "unreadable"]
    # The condition whose values cannot be read.
    path: Path = ()
    order: Order | None = None
    # That of the spend to sort by.
    currency: Currency = "EUR"
    after: Place | None = None
    limit: int = 0
    seed: int = 0
    deadline_s: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One of its members is there; `is_ready` is false while the columns are built, or if there are none.

    `is_renumbered`: the place that was asked for is one of columns that are no longer there.
    """

    figures: Figures | None = None
    members: Members | None = None
    is_ready: bool = True
    is_renumbered: bool = False
    progress: Progress | None = None
    fault: str | None = None


# The columns are there, and the process that reads them is not yet.
STARTING: Final = Progress("building", "starting", 0, 0)


class NotReady(Exception):
    """There are no columns, they are being built, or the analysis process is starting."""

    def __init__(self, progress: Progress | None) -> None:
        subject = (
            "The analysis process is starting"
            if progress == STARTING
            else "The customers are being prepared for segments"
        )
        super().__init__(f"{subject}; try again in a moment.")
        self.progress = progress


class Renumbered(Exception):
    """The columns were built anew between two pages."""

    def __init__(self) -> None:
        super().__init__("The customers were prepared anew and are in another order now; begin with the first page.")


class AnalysisAway(Exception):
    """The analysis process is away, or did not answer in time."""


LENGTH_BYTES: Final = 4
MESSAGE_BYTES_MAX: Final = 16 << 20
# The kernel takes no longer address of a socket.
_PATH_CHARACTERS_MAX: Final = 100


def socket_path(settings: Settings) -> FilePath:
    """Where the analysis process of this data folder listens.

    A data folder that cannot be written, or whose name is too long for a socket, has a private folder among the
    temporary files instead.
    """
    path = settings.data_dir / "run" / "analysis.sock"
    if len(str(path)) <= _PATH_CHARACTERS_MAX and os.access(settings.data_dir, os.W_OK):
        return path
    name = hashlib.sha256(str(settings.data_dir).encode()).hexdigest()[:16]
    return FilePath(tempfile.gettempdir()) / f"regulars-{os.geteuid()}-{name}" / "analysis.sock"


def make_folder(folder: FilePath) -> None:
    """Make the private folder of the socket. One that another process of this user made with more rights loses them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(folder)
    folder.chmod(0o700)


def check_owner(folder: FilePath) -> None:
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
