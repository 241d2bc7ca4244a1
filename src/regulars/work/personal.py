"""How a room declares what it stores about people: which columns, how they are exported, and how they are erased."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx


@dataclass(slots=True, kw_only=True)
class ErasedPeople:
    """The people that an erasure removes, and the values by which their rows are found.

    The second pass a minute later, for rows that were being written during the erasure, has only the ids of the
    profiles.
    """

    profile_ids: list[UUID]
    secret: bytes = b""
    # The phone number of each profile, as it was sent.
    numbers: dict[UUID, str | None] = field(default_factory=dict)
    # Consent finds numbers by their hash, and adds those that it withdraws.
    subscription_ids: list[UUID] = field(default_factory=list)
    number_hashes: list[bytes] = field(default_factory=list)
    # Values by which a row without a foreign key may name them: external and canonical ids, and their names.
    references: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    # Pairs of key and value.
    attributes: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSubject:
    """The person whose data is exported."""

    organization_id: UUID
    profile_id: UUID
    secret: bytes


Erase = Callable[[Tx, UUID, ErasedPeople], Awaitable[None]]
# Yields the content of a JSON array, without its brackets, piece by piece.
Export = Callable[[Database, DataSubject], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """What a room stores about people.

    Every column of text, JSON or bytes of the room is listed in `columns` or in `not_personal`; a test compares both
    with the schema. `not_personal` names a column (`texts.step`) or a whole table (`text_totals`) and says why no
    person is in it.
    """

    columns: tuple[str, ...] = ()
    not_personal: Mapping[str, str] = field(default_factory=dict)
    erase: Erase | None = None
    # For rows that were being written during the erasure; None: the same as `erase`.
    erase_stragglers: Erase | None = None
    # The functions that export the data, by field of the exported document.
    exports: Mapping[str, Export] = field(default_factory=dict)


async def join_pages(pages: AsyncIterator[Sequence[bytes]]) -> AsyncIterator[bytes]:
    """The documents of all pages, separated by commas."""
    is_first = True
    async for page in pages:
        if page:
            yield (b"" if is_first else b",") + b",".join(page)
            is_first = False


# Each room erases people from its own waiting facts.
PERSONAL_DATA: Final = PersonalData(
    columns=("outbox.payload", "outbox_retries.payload"),
    not_personal={
        "outbox.topic": "the name of a kind of fact",
        "outbox_retries.topic": "the name of a kind of fact",
        "outbox_retries.listener": "the name of a listener",
        "interests": "names of topics and listeners",
    },
)
