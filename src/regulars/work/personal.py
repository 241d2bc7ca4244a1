"""Types with which a module declares its personal data: the columns, and the functions that export and erase them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from regulars.kit.db import Database, Tx

EXPORT_PAGE_ROWS: Final = 200
_FIRST_ID: Final = UUID(int=0)

Row = TypeVar("Row")


@dataclass(slots=True, kw_only=True)
class ErasedPeople:
    """The customers that an erasure removes, and the values by which their rows are found.

    A second pass follows a minute later, for rows that were being written during the erasure; it has only
    `profile_ids`.
    """

    profile_ids: list[UUID]
    secret: bytes = b""
    # The phone number of each profile, as it was sent.
    numbers: dict[UUID, str | None] = field(default_factory=dict)
    # The erasure of consents adds the subscriptions and number hashes that it withdraws.
    subscription_ids: list[UUID] = field(default_factory=list)
    number_hashes: list[bytes] = field(default_factory=list)
    # Values by which a row without a foreign key may name the customers: their external and canonical ids, and names.
    references: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    # The profiles' attributes, as pairs of key and value.
    attributes: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSubject:
    """The customer whose data is exported."""

    organization_id: UUID
    profile_id: UUID
    secret: bytes


Erase = Callable[[Tx, UUID, ErasedPeople], Awaitable[None]]
# Yields the content of a JSON array, without its brackets, piece by piece.
Export = Callable[[Database, DataSubject], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """The personal data of a module.

    Every column of text, JSON or bytes of the module is listed in `columns` or in `not_personal`; a test compares both
    with the schema. `not_personal` has a column (`texts.step`) or a whole table (`text_totals`), and the reason why it
    has no personal data.
    """

    columns: tuple[str, ...] = ()
    not_personal: Mapping[str, str] = field(default_factory=dict)
    erase: Erase | None = None
    # Erases rows that were being written during the erasure; if None, `erase` is used.
    erase_late_rows: Erase | None = None
    # The functions that export the data, by field of the exported document.
    exports: Mapping[str, Export] = field(default_factory=dict)


def export_rows(
    database: Database,
    list_rows: Callable[[Tx, Any, int], Awaitable[Sequence[Row]]],
    describe: Callable[[Row], Any],
    *,
    position: Callable[[Row], UUID | int],
    start: UUID | int = _FIRST_ID,
    page_rows: int = EXPORT_PAGE_ROWS,
) -> AsyncIterator[bytes]:
    """Yield the rows of a customer as JSON documents. `list_rows` gets the position of the last row so far and the
    number of rows to read; `describe` converts a row. Each page is read in a separate transaction."""

    async def pages() -> AsyncIterator[list[bytes]]:
        after = start
        while True:
            async with database.reading() as tx:
                page = await list_rows(tx, after, page_rows)
            yield [msgspec.json.encode(describe(row)) for row in page]
            if len(page) < page_rows:
                break
            after = position(page[-1])

    return join_pages(pages())


async def join_pages(pages: AsyncIterator[Sequence[bytes]]) -> AsyncIterator[bytes]:
    """Yield the documents of all pages, separated by commas."""
    is_first = True
    async for page in pages:
        if page:
            yield (b"" if is_first else b",") + b",".join(page)
            is_first = False


# Each module erases customers from its own waiting facts (`outbox.rewrite_waiting_facts`).
PERSONAL_DATA: Final = PersonalData(
    columns=("outbox.payload", "outbox_retries.payload"),
    not_personal={
        "outbox.topic": "the name of a kind of fact",
        "outbox_retries.topic": "the name of a kind of fact",
        "outbox_retries.listener": "the name of a listener",
        "interests": "names of topics and listeners",
    },
)
