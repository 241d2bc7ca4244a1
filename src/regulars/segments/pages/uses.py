"""Where a segment is used: other segments, and what rooms above have registered."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.kept.manage import find_names
from regulars.segments.kept.uses import DescribeUses, Use, find_uses

PATH: Final = "/segments"


async def describe_segments(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Use]:
    names = await find_names(tx, organization_id, ids)
    effect = "Its members change with this one, at once."
    return {
        identifier: Use(name, f"{PATH}/{SEGMENT.encode(identifier)}", "segment", effect=effect)
        for identifier, name in names.items()
    }


async def list_uses(
    tx: Tx, organization_id: UUID, segment_ids: Collection[UUID], describe: Mapping[str, DescribeUses]
) -> dict[UUID, Sequence[Use]]:
    """Of each segment, whoever asks for it."""
    rows = await find_uses(tx, organization_id, segment_ids)
    known: dict[tuple[str, UUID], Use] = {}
    for kind, words in describe.items():
        ids = {row.id for row in rows if row.kind == kind}
        if ids:
            known |= {(kind, identifier): use for identifier, use in (await words(tx, organization_id, ids)).items()}
    found: dict[UUID, list[Use]] = {segment_id: [] for segment_id in segment_ids}
    for row in rows:
        found[row.segment_id].append(known.get((row.kind, row.id), Use(f"A {row.kind}", "", row.kind)))
    return dict(found)
