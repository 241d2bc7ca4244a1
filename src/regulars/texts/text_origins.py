"""Find the journeys and campaigns that requested texts, with the names and paths that pages show."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.texts.model import MessageListItem, TextRow


class TextOrigin(NamedTuple):
    """The name of the journey or campaign that requested a text, and the path of its page below the organization."""

    name: str
    path: tuple[str, ...]


# Finds the journeys or the campaigns with these ids. The functions come from packages that import `texts`.
FindOrigins = Callable[[Tx, UUID, Collection[UUID]], Awaitable[Mapping[UUID, TextOrigin]]]
OriginFinders = Mapping[str, FindOrigins]


async def find_origins(
    tx: Tx, organization_id: UUID, finders: OriginFinders, texts: Iterable[MessageListItem | TextRow | None]
) -> dict[UUID, TextOrigin]:
    """The journeys and campaigns that requested the texts, by id."""
    ids_by_kind: dict[str, set[UUID]] = {}
    for text in texts:
        if text is not None and text.origin_id is not None:
            ids_by_kind.setdefault(text.origin_kind, set()).add(text.origin_id)
    origins: dict[UUID, TextOrigin] = {}
    for kind, find in finders.items():
        if kind in ids_by_kind:
            origins |= await find(tx, organization_id, ids_by_kind[kind])
    return origins
