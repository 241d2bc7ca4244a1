"""The state of an organization's columns, and the packed format of their runs. No I/O; does not import numpy.

The columns are a columnar copy of customers and sales. They consist of runs, as in an LSM tree. A run is an immutable
chunk of rows: a *patch* has changed customers, a *block* has a range of customers, and the other runs have sales. An
*epoch* is one build of all columns; its number is stored with every run.
"""

import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

# Columns that were written in an older format are rebuilt.
FORMAT: Final = 4
BLOCK_CUSTOMERS: Final = 1 << 16
# A failed fact waits for a retry under this listener name, so the name never changes.
SALES_LISTENER: Final = "segments.sales"
# The kinds of runs with sales: sales with a customer, which segments read, and all other sales.
IDENTIFIED_SALES: Final = "sales"
ANONYMOUS_SALES: Final = "anonymous"
# The customer number of a sale in an anonymous run: it never had a customer, or the customer was erased.
NO_CUSTOMER: Final = -1
ERASED: Final = -2
# The single part of a run that is packed row by row, before compaction splits it into columns.
WHOLE: Final = "*"
# The fastest level of zlib.
_QUICK: Final = 1
BEFORE_ALL: Final = UUID(int=0)
# How long one process may compact before another one takes over.
COMPACTION_CLAIM: Final = timedelta(minutes=5)

# The consent state of a customer, as it is packed.
NEVER_ASKED, MAY_BE_TEXTED, WITHDRAWN, DO_NOT_CONTACT = range(4)


@dataclass(slots=True)
class State:
    """The row of `segment_columns`; every writer of columns locks it. The fields have the names of the table's columns:
    `folded_to` is the last patch merged into blocks, `is_littered` says that old rows wait to be deleted, `tidy_at` is
    when the next compaction is due, and `used_at` the day on which the pages of Analyse were last opened. During a
    build `walked_to` is the last id that was copied, and `fence` the transaction id before which no transaction may be
    open.
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
    # When the oldest erasure was recorded whose data is not purged yet.
    erased_since: datetime | None
    is_littered: bool
    build_at: datetime | None
    tidy_at: datetime | None
    phase_at: datetime | None
    used_at: datetime | None

    def begin_phase(self, phase: str, now: datetime) -> None:
        self.phase, self.phase_at, self.walked_to, self.done, self.total = phase, now, BEFORE_ALL, 0, 0

    def request_compaction(self, now: datetime) -> None:
        """Make a compaction due now, unless one is claimed. A due time after the end of a claim is that of a
        purge, which is too late: too many runs would accumulate until then."""
        if self.tidy_at is None or self.tidy_at > now + COMPACTION_CLAIM:
            self.tidy_at = now


class BuildProgress(msgspec.Struct, frozen=True):
    """Progress of a build; `total` is the number of rows when the phase began, and `left_s` an estimate of the seconds
    until it ends."""

    state: Literal["building", "ready"]
    phase: str
    done: int
    total: int
    left_s: int | None = None


class Run(NamedTuple):
    """A stored run without its data. `ordinal` is the index of a block, and otherwise the order in which runs were
    written."""

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
    # The id of the profile; empty after it was erased.
    profile: bytes = b""
    created_s: int = 0
    is_named: bool = False
    country: str | None = None
    # The first eight bytes of the hash of the customer's own phone number; 0 without a number.
    own_hash: int = 0
    consent: int = NEVER_ASKED
    source: str | None = None
    store: bytes | None = None
    since_s: int | None = None
    attributes: dict[str, str] = {}
    # The time of the last text of each journey and of each campaign; None is for all other texts. The time is 0 if the
    # outcome of the text is unknown.
    texts: tuple[tuple[bytes | None, int], ...] = ()


class LinePack(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Lines of sales column by column, in the order of their sales; `pack_numbers` encodes each column."""

    # 0 means no product; otherwise the index in `products` plus 1.
    product: bytes
    # In millionths, negative if returned. In `line_units` a line with a unit of measure, such as kg, counts as one
    # unit.
    quantity: bytes
    line_units: bytes
    total: bytes
    products: list[bytes]


class SalesPack(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Sales column by column; `pack_numbers` encodes each column."""

    sales: int
    first_s: int
    last_s: int
    customer: bytes
    at_s: bytes
    store: bytes
    # Twice the index of its currency, plus 1 for a return.
    kind: bytes
    # The amount, the discount and the tax are negative for a return.
    amount: bytes
    discount: bytes
    tax: bytes
    # How many lines each sale has.
    lines: bytes
    stores: list[bytes]
    currencies: list[str]
    of_lines: LinePack


def pack_numbers(numbers: Sequence[int]) -> bytes:
    """Encode all numbers with the same number of bytes, as few as possible; the first byte is this number."""
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
