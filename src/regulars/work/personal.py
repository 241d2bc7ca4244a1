"""How a room declares what it stores about people: which columns, how they are exported, and how they are erased."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx


@dataclass(slots=True, kw_only=True)
class ErasedPeople:
    """Whom an erasure is about, and what leads to their rows.

    The pass for stragglers, a minute later, knows the ids of the profiles and nothing else.
    """

    profile_ids: list[UUID]
    secret: bytes = b""
    # The number on each profile, as it was sent.
    numbers: dict[UUID, str | None] = field(default_factory=dict)
    # Consent withdraws the numbers that are known by their hash, and adds those that it finds.
    subscription_ids: list[UUID] = field(default_factory=list)
    number_hashes: list[bytes] = field(default_factory=list)
    # What a row without a link may call them: external and canonical ids, and their names.
    references: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    # Keys and values.
    attributes: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whose data is exported, by whom they are found."""

    organization_id: UUID
    profile_id: UUID
    secret: bytes


Erase = Callable[[Tx, UUID, ErasedPeople], Awaitable[None]]
# Gives what stands between the brackets of a JSON array, piece by piece.
Export = Callable[[Database, Person], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """What a room stores about people.

    Every column of text, JSON or bytes of the room stands in `columns` or in `harmless`; a test compares both with the
    schema. `harmless` names a column (`texts.step`) or a whole table (`text_totals`) and says why no person is in it.
    """

    columns: tuple[str, ...] = ()
    harmless: Mapping[str, str] = field(default_factory=dict)
    erase: Erase | None = None
    # For what was being written while a person was erased; None: the same as `erase`.
    erase_stragglers: Erase | None = None
    # The member of the exported document, and what stands in it.
    exports: Mapping[str, Export] = field(default_factory=dict)


async def joined(pages: AsyncIterator[Sequence[bytes]]) -> AsyncIterator[bytes]:
    """Documents, page by page, with a comma between any two."""
    is_first = True
    async for page in pages:
        if page:
            yield (b"" if is_first else b",") + b",".join(page)
            is_first = False


# Of facts that wait, the room of each takes the people out.
PERSONAL_DATA: Final = PersonalData(
    columns=("outbox.payload", "outbox_retries.payload"),
    harmless={
        "outbox.topic": "the name of a kind of fact",
        "outbox_retries.topic": "the name of a kind of fact",
        "outbox_retries.listener": "the name of a listener",
        "interests": "names of topics and listeners",
    },
)
