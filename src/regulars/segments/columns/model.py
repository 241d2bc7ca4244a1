"""The state of an organization's columns, and the packed format of their runs. No I/O; imports no numpy."""

import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

# Columns that were written in another format are built again.
FORMAT: Final = 4
BLOCK_CUSTOMERS: Final = 1 << 16
# A failed fact waits for a retry under this listener name, so the name never changes.
SALES_LISTENER: Final = "segments.sales"
# The kinds of runs with sales: those of customers, which segments read, and all others.
OF_CUSTOMERS: Final = "sales"
ANONYMOUS: Final = "anonymous"
# The customer of a sale in a run of the second kind: there never was one, or it was erased.
NO_CUSTOMER: Final = -1
ERASED: Final = -2
# The single part of a run that is packed row by row, before compaction splits it into columns.
WHOLE: Final = "*"
_QUICK: Final = 1
BEFORE_ALL: Final = UUID(int=0)
# How long one process may compact before another one takes over.
COMPACTION_CLAIM: Final = timedelta(minutes=5)

# The consent state of a customer, as it is packed.
NEVER_ASKED, MAY_BE_TEXTED, WITHDRAWN, DO_NOT_CONTACT = range(4)


@dataclass(slots=True)
class State:
    """The row of `segment_columns`; every writer of columns locks it. The fields have the names of the table's columns:
    `folded_to` is the last patch merged into blocks, `is_littered` says that old rows wait to be deleted, at `tidy_at`
    the next compaction is due, and at `used_at` the pages of Analyse were last opened, to the day.
    """

    epoch: int
    state: str
    phase: str
    format: int
    fence: int | None
    fenced_at: datetime | None
    walked_to: UUID
    done: int
    total: int
    next_number: int
    next_run: int
    folded_to: int
    consents: int
    # When the oldest erasure was recorded whose bytes are still stored.
    erased_since: datetime | None
    is_littered: bool
    build_at: datetime | None
    tidy_at: datetime | None
    phase_at: datetime | None
    used_at: datetime | None

    def begin_phase(self, phase: str, now: datetime) -> None:
        self.phase, self.phase_at, self.walked_to, self.done, self.total = phase, now, BEFORE_ALL, 0, 0

    def request_compaction(self, now: datetime) -> None:
        """Make a compaction due now, unless one is claimed. A later time is that of a purge; runs would pile up until
        then."""
        if self.tidy_at is None or self.tidy_at > now + COMPACTION_CLAIM:
            self.tidy_at = now


class Progress(msgspec.Struct, frozen=True):
    """Progress of a build; `total` is the number of rows when the phase began, and `left_s` an estimate of the seconds
    until it ends."""

    state: Literal["building", "ready"]
    phase: str
    done: int
    total: int
    left_s: int | None = None


class Run(NamedTuple):
    id: int
    kind: str
    level: int
    ordinal: int
    rows: int
    bytes: int
    first_s: int | None = None
    last_s: int | None = None


class CustomerState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """All values of a customer except sales; a patch contains the whole state, so the last patch wins."""

    number: int
    is_alive: bool
    # The id of the profile; empty once it is erased.
    profile: bytes = b""
    created_s: int = 0
    is_named: bool = False
    country: str | None = None
    # The first eight bytes of the hash of their own number; 0 without one.
    own_hash: int = 0
    consent: int = NEVER_ASKED
    source: str | None = None
    store: bytes | None = None
    since_s: int | None = None
    attributes: dict[str, str] = {}
    # The last text of each journey, of each campaign, or of neither. The time is 0 if its outcome is unknown.
    texts: tuple[tuple[bytes | None, int], ...] = ()


class LinePack(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Lines in columns, in the order of their sales; `pack_numbers` makes the bytes."""

    # 0 is no product; otherwise the index in `products` plus 1.
    product: bytes
    # In millionths, negative if returned. A line with a unit of measure is one of the units.
    quantity: bytes
    line_units: bytes
    total: bytes
    products: list[bytes]


class SalesPack(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Sales in columns; `pack_numbers` makes the bytes."""

    sales: int
    first_s: int
    last_s: int
    customer: bytes
    at_s: bytes
    store: bytes
    # Twice the index of its currency, plus 1 for a return.
    kind: bytes
    # Negative for a return, as the discount and the tax.
    amount: bytes
    discount: bytes
    tax: bytes
    # How many lines each sale has.
    lines: bytes
    stores: list[bytes]
    currencies: list[str]
    of_lines: LinePack


def pack_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers in as few bytes each as all of them fit into, after a byte that says how many."""
    for kind in ("b", "h", "i", "q"):
        try:
            packed = array(kind, numbers)
        except OverflowError:
            continue
        return bytes((packed.itemsize,)) + packed.tobytes()
    raise OverflowError("a number does not fit into 64 bits")


_customers = msgspec.msgpack.Decoder(list[CustomerState])
_sales = msgspec.msgpack.Decoder(SalesPack)


def pack_customers(states: Sequence[CustomerState]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(states), _QUICK)


def unpack_customers(content: bytes) -> list[CustomerState]:
    return _customers.decode(zlib.decompress(content))


def pack_sales(pack: SalesPack) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(pack), _QUICK)


def unpack_sales(content: bytes) -> SalesPack:
    return _sales.decode(zlib.decompress(content))
