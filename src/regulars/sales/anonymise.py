"""Take a person out of the sales: the sales stay, so no total moves."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.json import encode
from regulars.sales import queries

# Shorter ones stand in every other note, as a part of another word.
NAME_CHARACTERS_MIN: Final = 4


async def anonymise_sales(
    tx: Tx,
    organization_id: UUID,
    profile_ids: Collection[UUID],
    *,
    references: Collection[str] = (),
    names: Collection[str] = (),
) -> None:
    """Take the people out of their sales, and delete the ticket collisions on those or naming the people.

    `references` are ids and numbers, which stand in a collision as a whole value. `names` may also stand inside a note.
    """
    unlinked = await queries.unlink_profiles(tx, organization_id, profile_ids)
    if unlinked:
        await queries.delete_collisions(tx, organization_id, unlinked)
        await queries.forget_notes(tx, organization_id, unlinked)
    if references:
        quoted = [encode(reference).decode() for reference in references]
        naming = await queries.delete_collisions_that_name(tx, organization_id, references, quoted=quoted)
        await queries.forget_notes(tx, organization_id, naming)
    if noted := [name for name in (*references, *names) if len(name) >= NAME_CHARACTERS_MIN]:
        await queries.forget_notes_that_name(tx, organization_id, noted)
