"""Requests to the analysis process, which counts customers and sales, its responses, and the local socket between them.

This module does not import numpy or Polars, so that other processes stay small. The analysis process reads columnar
data, which is a derived copy of customers and sales; each build of it gives the customers new numbers.
"""

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
from regulars.columns.model import BuildProgress
from regulars.columns.questions import Answer, Question
from regulars.conditions.tree import ConsentState, Group, Path
from regulars.experiments.sums import WeeklySpend
from regulars.kit.settings import Settings
from regulars.sales.model import Currency

_CURSOR: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


class ConsentSplit(msgspec.Struct, frozen=True):
    """The number of members in each consent state, by the rules of `/v1/subscriptions/check`."""

    may_be_texted: int = 0
    withdrawn: int = 0
    never_asked: int = 0
    do_not_contact: int = 0


class ConditionCount(msgspec.Struct, frozen=True):
    """For how many customers a condition or group is true, and how many have a value that cannot be parsed."""

    path: Path
    count: int
    unreadable: int = 0


class SegmentCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a segment, all from one snapshot, so they agree with each other."""

    total: int
    customers: int
    split: ConsentSplit
    conditions: tuple[ConditionCount, ...]
    as_of: datetime
    took_ms: float


class MemberCursor(NamedTuple):
    """The customer number at which a page of members begins, in one build (epoch) of the columnar data."""

    epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


def parse_cursor(text: str) -> MemberCursor | None:
    parts = _CURSOR.fullmatch(text)
    return None if parts is None else MemberCursor(int(parts[1]), int(parts[2]))


# Sort keys of members, largest first; without a sort key, members are in the order of their customer numbers.
Order = Literal["created", "last_purchase", "spend"]


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """A page of members; `total` counts the members of all pages. In a sorted list, `next.number` is the number of
    members before the next page."""

    profile_ids: tuple[UUID, ...]
    total: int = 0
    next: MemberCursor | None
    as_of: datetime


class AudienceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of an audience, all from one snapshot. Countries and spend are of customers who may be texted."""

    total: int
    split: ConsentSplit
    # By the country of the customer's own number, the most frequent first; None for customers without a number.
    countries: tuple[tuple[str | None, int], ...]
    spend: tuple[WeeklySpend, ...]
    as_of: datetime
    # Random customers who may be texted; the request says how many.
    sample: tuple[UUID, ...] = ()


class AudiencePiece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the customers of an audience, all with the same consent state. Customers who may be texted come
    first."""

    state: ConsentState
    # 16 bytes for each id.
    profile_ids: bytes
    # The counts of the whole audience; only in the first piece.
    counts: AudienceCounts | None = None
    is_last: bool


class SegmentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions with all data that they refer to: types of attributes and properties, stores and other segments."""

    match: Group
    attributes: Mapping[str, tuple[AttributeType, tuple[str, ...]]] = {}
    properties: Mapping[str, tuple[AttributeType, tuple[str, ...]]] = {}
    stores: Mapping[str, UUID] = {}
    # The conditions of the referenced segments, by id; None for an invalid segment, which has no members.
    segments: Mapping[str, Group | None] = {}
    zone: str
    today: date
    # A query with a fault has no members.
    is_faulty: bool = False


# What the response contains: `figures` are the counts of a segment, `unreadable` lists customers with a value that
# cannot be parsed, `audience` has the counts of an audience, and `freeze` the ids of its customers too.
Want = Literal["figures", "members", "sample", "unreadable", "audience", "freeze", "answer"]


class AnalysisRequest(msgspec.Struct, frozen=True, kw_only=True):
    organization_id: UUID
    query: SegmentQuery = msgspec.field(name="asked")
    want: Want
    # For `unreadable`: the path of the condition.
    path: Path = ()
    order: Order | None = None
    # The currency of the spend to sort by.
    currency: Currency = "EUR"
    after: MemberCursor | None = None
    limit: int = 0
    seed: int = 0
    # Whether the counts of an audience contain its spend, for which sales are loaded.
    with_spend: bool = False
    # For `answer`: the analytics question.
    question: Question | None = None
    deadline_s: float


class AnalysisResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Contains counts, members, a piece of an audience, the answer to an analytics question, or an error (`fault`).

    `is_ready` is false while the columnar data is being built, or if there is none.
    `is_renumbered` is true if the cursor of the request belongs to an earlier build.
    """

    figures: SegmentCounts | None = None
    members: Members | None = None
    audience: AudienceCounts | None = None
    piece: AudiencePiece | None = None
    answer: Answer | None = None
    is_ready: bool = True
    is_renumbered: bool = False
    progress: BuildProgress | None = None
    fault: str | None = None


# The columnar data is ready, but the analysis process is still starting.
STARTING: Final = BuildProgress("building", "starting", 0, 0)


class NotReady(Exception):
    """There is no columnar data, it is being built, or the analysis process is starting."""

    def __init__(self, progress: BuildProgress | None) -> None:
        subject = (
            "The analysis process is starting"
            if progress == STARTING
            else "The customers are being prepared for segments"
        )
        super().__init__(f"{subject}; try again in a moment.")
        self.progress = progress


class CursorExpired(Exception):
    """The columnar data was rebuilt between two pages."""

    def __init__(self) -> None:
        super().__init__("The customers were prepared again and have a new order; start from the first page.")


class AnalysisUnavailable(Exception):
    """The analysis process does not run, or did not respond in time."""


LENGTH_BYTES: Final = 4
# Enough for a question with the ids of ten million customers, 16 bytes each.
MESSAGE_BYTES_MAX: Final = 256 << 20
# The kernel limits the length of a socket address.
_PATH_CHARACTERS_MAX: Final = 100


def socket_path(settings: Settings) -> FilePath:
    """The path of the socket of the analysis process for this data folder.

    If the data folder is not writable, or its name is too long for a socket, the socket is in a private folder in the
    directory for temporary files instead.
    """
    path = settings.data_dir / "run" / "analysis.sock"
    if len(str(path)) <= _PATH_CHARACTERS_MAX and os.access(settings.data_dir, os.W_OK):
        return path
    name = hashlib.sha256(str(settings.data_dir).encode()).hexdigest()[:16]
    return FilePath(tempfile.gettempdir()) / f"regulars-{os.geteuid()}-{name}" / "analysis.sock"


def make_folder(folder: FilePath) -> None:
    """Create the private folder of the socket, or restrict the rights of an existing folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(folder)
    folder.chmod(0o700)


def check_owner(folder: FilePath) -> None:
    """Refuse a folder that belongs to another user of this machine.

    The folder for temporary files is shared: another user could create this folder first and impersonate the analysis
    process.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"The folder {folder} of the analysis socket belongs to another user; remove it.")


async def read_message(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if size > MESSAGE_BYTES_MAX:
        raise ConnectionError("the message is too long")
    return await reader.readexactly(size)


async def write_message(writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
    await writer.drain()
