"""Changing a draft, saving it as a version, and throwing it away.

Two people may write at once. A form carries the fingerprint of the piece it shows; if that piece is still the same the
change is made, whatever happened elsewhere in the draft. If not, whoever came second is told and keeps what they wrote.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import msgspec

from regulars.journeys import queries as journeys
from regulars.journeys.check import find_excess, segments_of
from regulars.journeys.condition_check import Fault
from regulars.journeys.definition import Definition
from regulars.journeys.drafts import queries
from regulars.journeys.drafts.queries import DraftRow
from regulars.journeys.errors import ChangedMeanwhile, DraftTooLarge, JourneyNotFound, NotPossible
from regulars.journeys.manage import Journey, check_definition, load_journey, update_journey
from regulars.journeys.model import JourneyRow
from regulars.journeys.names import find_segment_names
from regulars.journeys.read import read_definition, write_definition
from regulars.kit.db import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """`changed_at` is None where nobody has changed anything since the version it is."""

    row: JourneyRow
    definition: Definition
    faults: list[Fault]
    based_on: int
    revision: int
    changed_at: datetime | None = None
    changed_by: str | None = None
    # The names of the segments it asks for, by their ids.
    segments: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Whether there is anything to save."""
        return self.changed_at is not None


class PieceChanged(Exception):
    """Somebody else changed the same piece meanwhile; the draft is as it stands now."""

    def __init__(self, draft: Draft) -> None:
        super().__init__("Somebody else changed this meanwhile.")
        self.draft = draft


def fingerprint(piece: object) -> str:
    """What a form remembers of the piece it shows."""
    return hashlib.sha256(msgspec.json.encode(piece)).hexdigest()[:16]


async def load_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> Draft:
    """What is being written, or the last version where nobody writes."""
    journey = await load_journey(tx, organization_id, journey_id)
    return await _draft(tx, organization_id, journey.row, await queries.find_draft(tx, organization_id, journey_id))


async def change_draft(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    *,
    piece: Callable[[Definition], object],
    was: str,
    change: Callable[[Definition], Definition],
    by: str,
) -> Draft:
    """Make one change; `piece` is what the form was about, and `was` its fingerprint when the form was drawn."""
    draft = await _lock(tx, organization_id, journey_id)
    if fingerprint(piece(draft.definition)) != was:
        raise PieceChanged(draft)
    changed = change(draft.definition)
    # One that is too large already may still be made smaller.
    if (excess := find_excess(changed)) is not None and find_excess(draft.definition) is None:
        raise DraftTooLarge(f"{excess.message} Nothing was changed.")
    row = DraftRow(draft.based_on, draft.revision + 1, write_definition(changed).decode(), tx.now, by)
    await queries.upsert_draft(tx, organization_id, journey_id, row)
    return await _draft(tx, organization_id, draft.row, row)


async def save_draft(
    tx: Tx, organization_id: UUID, journey_id: UUID, *, revision: int, by: str, is_over: bool = False
) -> Journey:
    """A new version of what was written; a live journey takes it at once.

    Whoever saves has seen one revision: if another was written since, or another version saved, they are told.
    """
    draft = await _lock(tx, organization_id, journey_id)
    if not draft.is_new:
        raise NotPossible("There is nothing to save: nothing was changed since the last version.")
    if draft.revision != revision:
        raise ChangedMeanwhile(f"{draft.changed_by} changed the draft meanwhile; look at it before you save it.")
    based_on = None if is_over else draft.based_on
    journey = await update_journey(tx, organization_id, journey_id, draft.definition, created_by=by, based_on=based_on)
    await queries.delete_draft(tx, organization_id, journey_id)
    return journey


async def discard_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> bool:
    return await queries.delete_draft(tx, organization_id, journey_id) > 0


async def _lock(tx: Tx, organization_id: UUID, journey_id: UUID) -> Draft:
    """The journey's row is what everybody who writes holds."""
    row = await journeys.lock_journey(tx, organization_id, journey_id)
    if row is None:
        raise JourneyNotFound("There is no journey with this id.")
    if row.state == "archived":
        raise NotPossible("A journey that has ended does not change; make a copy of it.")
    return await _draft(tx, organization_id, row, await queries.find_draft(tx, organization_id, journey_id))


async def _draft(tx: Tx, organization_id: UUID, row: JourneyRow, found: DraftRow | None) -> Draft:
    if found is None:
        journey = await load_journey(tx, organization_id, row.id)
        return Draft(
            row=row,
            definition=journey.definition,
            faults=journey.faults,
            based_on=row.version,
            revision=0,
            segments=await find_segment_names(tx, organization_id, segments_of(journey.definition)),
        )
    definition = read_definition(found.definition.encode())
    return Draft(
        row=row,
        definition=definition,
        faults=await check_definition(tx, organization_id, definition),
        based_on=found.based_on,
        revision=found.revision,
        changed_at=found.changed_at,
        changed_by=found.changed_by,
        segments=await find_segment_names(tx, organization_id, segments_of(definition)),
    )
