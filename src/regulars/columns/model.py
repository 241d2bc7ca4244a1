"""The state of an organization's columns, and the packed format of their runs. No I/O; does not import numpy.

The columns are a columnar copy of customers and sales. They consist of runs, as in an LSM tree. A run is an immutable
chunk of rows: a *patch* has changed customers, a *block* has a range of customers, and all other runs have sales. An
*epoch* is one build of all columns; its number is stored with every run.
"""

import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

# Columns that were written in an older format are rebuilt.
FORMAT: Final = 4
BLOCK_CUSTOMERS: Final = 1 << 16
# A failed event waits for a retry under this listener name, so the name never changes.
SALES_LISTENER: Final = "segments.sales"
# The kinds of runs with sales: sales with a customer, which segments read, and sales without a customer.
IDENTIFIED_SALES: Final = "sales"
ANONYMOUS_SALES: Final = "anonymous"
# Instead of a customer number: the sale never had a customer, or the customer was erased.
NO_CUSTOMER: Final = -1
ERASED: Final = -2
# The name of the only part of a new run, before compaction splits the run into one part for each column.
PACKED: Final = "*"
_FASTEST_LEVEL: Final = 1
LOWEST_ID: Final = UUID(int=0)
# How long one process may compact before another process takes over.
COMPACTION_CLAIM: Final = timedelta(minutes=5)

# The codes of consent states.
NEVER_ASKED, MAY_BE_TEXTED, WITHDRAWN, DO_NOT_CONTACT = range(4)


@dataclass(slots=True)
class State:
    """The row of `segment_columns`, which every writer of columns locks. The fields have the names of the table's
    columns: `folded_to` is the last patch merged into blocks, `is_littered` says that old rows wait to be deleted,
    `tidy_at` is when the next compaction is due, and `used_at` when a user last opened Analyse. `consents` counts the
    changes of consents. During a build `walked_to` is the last id that was copied; the build waits until no transaction
    is open that is older than the transaction id `fence` or the time `fenced_at`.
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
    # The time of the oldest erasure whose data compaction has not purged yet.
    erased_since: datetime | None
    is_littered: bool
    build_at: datetime | None
    tidy_at: datetime | None
    phase_at: datetime | None
    used_at: datetime | None

    def begin_phase(self, phase: str, now: datetime) -> None:
        self.phase, self.phase_at, self.walked_to, self.done, self.total = phase, now, LOWEST_ID, 0, 0

    def request_compaction(self, now: datetime) -> None:
        """Make a compaction due now, unless one runs. A due time later than the end of its claim is the time of a
        purge; until then too many runs would accumulate."""
        if self.tidy_at is None or self.tidy_at > now + COMPACTION_CLAIM:
            self.tidy_at = now


class BuildProgress(msgspec.Struct, frozen=True):
    """The progress of a phase of a build: `done` of `total` rows, and `left_s`, an estimate of the seconds until the
    end of the whole build."""

    state: Literal["building", "ready"]
    phase: str
    done: int
    total: int
    left_s: int | None = None


class Run(NamedTuple):
    """A stored run without its data. `ordinal` is the index of a block; other runs are numbered as they were written.
    `level` counts the merges of a run with sales."""

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
    # The id of each journey or campaign with the time of its last text; the id is None for all other texts. The time is
    # 0 if the outcome of the text is unknown.
    texts: tuple[tuple[bytes | None, int], ...] = ()


class LinePack(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Lines of sales as columns, in the order of their sales; `pack_numbers` encodes each column."""

    # 0 means no product; otherwise the index in `products` plus 1.
    product: bytes
    # Both in millionths, negative if returned. In `line_units` a line with a unit of measure, such as kg, counts as 1.
    quantity: bytes
    line_units: bytes
    total: bytes
    products: list[bytes]


class SalesPack(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Sales as columns; `pack_numbers` encodes each column."""

    sales: int
    first_s: int
    last_s: int
    customer: bytes
    at_s: bytes
    store: bytes
    # Twice the index of the currency, plus 1 for a return.
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


# The format of an integer of each size in bytes.
_INTEGERS: Final = {1: "b", 2: "h", 4: "i", 8: "q"}


def pack_numbers(numbers: Sequence[int]) -> bytes:
    """Encode each number in 1, 2, 4 or 8 bytes, the fewest into which all fit; the first byte says how many."""
    for size, kind in _INTEGERS.items():
        with suppress(struct.error):
            return bytes((size,)) + struct.pack(f"={len(numbers)}{kind}", *numbers)
    raise OverflowError("a number does not fit into 64 bits")


_customers = msgspec.msgpack.Decoder(list[CustomerState])
_sales = msgspec.msgpack.Decoder(SalesPack)


def pack_customers(states: Sequence[CustomerState]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(states), _FASTEST_LEVEL)


def unpack_customers(content: bytes) -> list[CustomerState]:
    return _customers.decode(zlib.decompress(content))


def pack_sales(pack: SalesPack) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(pack), _FASTEST_LEVEL)


def unpack_sales(content: bytes) -> SalesPack:
    return _sales.decode(zlib.decompress(content))
