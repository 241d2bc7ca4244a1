"""Segments by their names: a definition knows them only by their ids."""

from collections.abc import Collection, Mapping
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.kept.manage import find_names


async def find_segment_names(tx: Tx, organization_id: UUID, ids: Collection[str]) -> dict[str, str]:
    """Of those that are still there."""
    decoded = [identifier for identifier in map(SEGMENT.decode, ids) if identifier is not None]
    names = await find_names(tx, organization_id, decoded)
    return {SEGMENT.encode(identifier): name for identifier, name in names.items()}


def name_segments(words: str, names: Mapping[str, str]) -> str:
    """The same words, with names in the place of ids."""
    for segment_id, name in names.items():
        words = words.replace(segment_id, f"“{name}”")
    return words
