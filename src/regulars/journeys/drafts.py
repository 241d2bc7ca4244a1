"""Loads, changes, saves and discards the draft of a journey, which all its editors share.

`kit.etag` has the rule for two users who edit at the same time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.conditions.check import Fault
from regulars.journeys import queries
from regulars.journeys.check import find_empty_texts, find_size_fault
from regulars.journeys.definition import Definition, read_stored_definition, write_definition
from regulars.journeys.labels import find_reference_names
from regulars.journeys.manage import UNSAVED, Journey, check_definition, load_journey, update_journey
from regulars.journeys.model import JourneyRow
from regulars.journeys.program import references_of
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of, require_etag
from regulars.kit.refusals import NotPossible, TooLarge


class DraftRow(NamedTuple):
    """A row of `journey_drafts`. `based_on` is the version from which the draft was made; each change increments
    `revision`."""

    based_on: int
    revision: int
    definition: str
    changed_at: datetime | None
    changed_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The draft of a journey; `stored` has no time of change if the draft is the unchanged last version."""

    row: JourneyRow
    definition: Definition
    faults: list[Fault]
    stored: DraftRow
    # As of `Journey`.
    damage: tuple[Fault, ...] = ()
    # The names of the segments and campaigns that the definition refers to, by their ids.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether the draft has changes to save."""
        return self.stored.changed_at is not None

    @property
    def can_be_saved(self) -> bool:
        """Whether saving makes a version: the draft has changes, or the journey was never saved or is damaged."""
        return self.has_changes or self.row.version == UNSAVED or bool(self.damage)

    @property
    def etag(self) -> str:
        """Identifies the draft and the version that it is based on, because saving replaces both."""
        return etag_of((self.definition, self.stored.based_on))


async def load_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> Draft:
    """The draft, or the last version if there is no draft."""
    journey = await load_journey(tx, organization_id, journey_id)
    return await _make_draft(tx, organization_id, journey.row, await _find_draft(tx, organization_id, journey_id))


async def lock_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> Draft:
    """Load the draft to change it. Every transaction that changes drafts locks the row of the journey first."""
    row = await queries.lock_journey(tx, organization_id, journey_id)
    if row.state == "archived":
        raise NotPossible("A journey that has ended cannot be edited; duplicate it.")
    return await _make_draft(tx, organization_id, row, await _find_draft(tx, organization_id, journey_id))


async def write_draft(tx: Tx, organization_id: UUID, draft: Draft, changed: Definition, *, by: str) -> None:
    """Store a change of the draft, within the size limits; the caller has called `lock_draft`."""
    # A draft that already exceeds a size limit may still be changed, so that it can be made smaller.
    if (excess := find_size_fault(changed)) is not None and find_size_fault(draft.definition) is None:
        raise TooLarge(f"{excess.message} The change was not saved.")
    stored = draft.stored
    row = DraftRow(stored.based_on, stored.revision + 1, write_definition(changed).decode(), tx.now, by)
    await upsert_draft(tx, organization_id, draft.row.id, row)


async def save_draft(tx: Tx, organization_id: UUID, journey_id: UUID, *, etag: str, by: str) -> Journey:
    """Save the draft that the user saw (`etag`) as a new version, which a live journey uses at once. A draft that is
    equal to the last version makes none."""
    draft = await lock_draft(tx, organization_id, journey_id)
    if not draft.can_be_saved:
        raise NotPossible("There are no changes to save since the last version.")
    require_etag((draft.definition, draft.row.version), etag)
    journey = await load_journey(tx, organization_id, journey_id)
    if draft.definition != journey.definition or journey.row.version == UNSAVED or journey.damage:
        journey = await update_journey(tx, organization_id, journey_id, draft.definition, created_by=by)
    await discard_draft(tx, organization_id, journey_id)
    return journey


async def discard_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> bool:
    """Delete the draft; False if there is none."""
    deleted = await tx.execute(
        "DELETE FROM journey_drafts WHERE organization_id = %s AND journey_id = %s", (organization_id, journey_id)
    )
    return deleted > 0


async def _make_draft(tx: Tx, organization_id: UUID, row: JourneyRow, stored: DraftRow | None) -> Draft:
    if stored is None:
        journey = await load_journey(tx, organization_id, row.id)
        definition, faults, damage = journey.definition, journey.faults, journey.damage
        stored = DraftRow(row.version, 0, "", None, None)
    else:
        definition, unreadable = read_stored_definition(stored.definition)
        faults = unreadable + await check_definition(tx, organization_id, definition) + find_empty_texts(definition)
        damage = tuple(unreadable)
    return Draft(
        row=row,
        definition=definition,
        faults=faults,
        stored=stored,
        damage=damage,
        names=await find_reference_names(tx, organization_id, references_of(definition)),
    )


async def _find_draft(tx: Tx, organization_id: UUID, journey_id: UUID) -> DraftRow | None:
    return await tx.fetch_first(
        DraftRow,
        """
        SELECT based_on, revision, definition::text, changed_at, changed_by FROM journey_drafts
        WHERE organization_id = %s AND journey_id = %s
        """,
        (organization_id, journey_id),
    )


async def upsert_draft(tx: Tx, organization_id: UUID, journey_id: UUID, draft: DraftRow) -> None:
    """Store the draft; the caller has locked the journey's row."""
    await tx.execute(
        """
        INSERT INTO journey_drafts (organization_id, journey_id, based_on, revision, definition, changed_at, changed_by)
        VALUES (%s, %s, %s, %s, %s::json, %s, %s)
        ON CONFLICT (organization_id, journey_id)
        DO UPDATE SET based_on = EXCLUDED.based_on, revision = EXCLUDED.revision, definition = EXCLUDED.definition,
                      changed_at = EXCLUDED.changed_at, changed_by = EXCLUDED.changed_by
        """,
        (organization_id, journey_id, *draft),
    )
