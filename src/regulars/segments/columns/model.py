"""What is known of an organization's columns, and how their rows are packed. No I/O, and no library of columns."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

# Columns that were written in another format are built again.
FORMAT: Final = 3
BLOCK_CUSTOMERS: Final = 1 << 16
# Under this name a fact waits that the feeder failed on; it never changes.
SALES_LISTENER: Final = "segments.sales"
# The one part of a run that was packed row by row, before it is merged into columns.
WHOLE: Final = "*"
_QUICK: Final = 1
# How long the tidying up is one process's own.
TIDY_CLAIM: Final = timedelta(minutes=5)

# How a customer stands with consent, as it is packed.
NEVER_ASKED, MAY_BE_TEXTED, WITHDRAWN, DO_NOT_CONTACT = range(4)


@dataclass(slots=True)
class State:
    """The row that whoever writes columns holds locked; its fields are the columns of `segment_columns`."""

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
    # When the oldest erasure was heard whose bytes are still here.
    erased_since: datetime | None
    is_littered: bool
    build_at: datetime | None
    tidy_at: datetime | None

    def ask_to_tidy(self, now: datetime) -> None:
        """New runs wait for whoever tidies up now. A time that is further away than a claim is none: it is when the
        bytes of somebody erased have to go, and runs would pile up until then."""
        if self.tidy_at is None or self.tidy_at > now + TIDY_CLAIM:
            self.tidy_at = now


class Progress(msgspec.Struct, frozen=True):
    """How far a build is; `total` is what there was to read when the phase began."""

    state: Literal["building", "ready"]
    phase: str
    done: int
    total: int


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
    """Everything that is known of a customer besides their sales; a patch has it whole, so the last one counts."""

    number: int
    is_alive: bool
    # The id of the profile; nothing once it is erased.
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
    # The last text of each journey, or of none.
    texts: tuple[tuple[bytes | None, int], ...] = ()


class SalesPack(msgspec.Struct, array_like=True, frozen=True):
    """Sales in columns; every list has one item for each sale, or after `lines` for each line."""

    customer: list[int]
    at_s: list[int]
    store: list[int]
    # Twice the place of its currency, and one more for a return.
    kind: list[int]
    # Negative for a return.
    amount: list[int]
    lines: list[int]
    # 0 is no product; the place in `products` and one more.
    product: list[int]
    # In millionths, negative if returned.
    quantity: list[int]
    total: list[int]
    stores: list[bytes]
    currencies: list[str]
    products: list[bytes]


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
