"""Creates, changes, activates, pauses and archives journeys; finds their faults and the segments that they use."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal
from uuid import UUID

from regulars.conditions.check import Fault
from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import queries
from regulars.journeys.check import find_empty_texts, find_faults, find_unevaluable
from regulars.journeys.definition import Definition, read_stored_definition, write_definition
from regulars.journeys.interests import start_recording_facts
from regulars.journeys.model import JourneyRow
from regulars.journeys.program import references_of
from regulars.journeys.runs.definition_cache import load_shown_definitions
from regulars.journeys.runs.lifecycle import end_all_runs
from regulars.journeys.runs.lists import is_any_run_active
from regulars.journeys.snapshot import load_condition_context
from regulars.kit.db import Tx
from regulars.kit.etag import require_etag
from regulars.kit.ids import JOURNEY, SEGMENT, new_uuid
from regulars.kit.refusals import NotFound, NotPossible
from regulars.segments.saved.uses import Use, register_uses
from regulars.texts.stops import lock_claims, resume, stop

# After a longer pause the user who resumes chooses whether waiting runs continue or end.
LONG_PAUSE: Final = timedelta(hours=48)
WaitingRuns = Literal["continue", "end"]
# The `kind` with which journeys register the segments that they use.
KIND: Final = "journey"
# The version of a journey that no user has saved yet.
UNSAVED: Final = 0


@dataclass(frozen=True, slots=True)
class Journey:
    row: JourneyRow
    definition: Definition
    faults: list[Fault]
    # Those of the faults that stand for stored parts which are not valid; `definition` is without these parts.
    damage: tuple[Fault, ...] = ()


async def create_journey(
    tx: Tx, organization_id: UUID, definition: Definition, *, created_by: str | None = None, is_saved: bool = True
) -> Journey:
    """Create a draft, which may have faults. Its definition is version 1. If `is_saved` is false, it is version 0, from
    which the user makes version 1 by saving or activating the journey."""
    journey_id = new_uuid()
    await tx.execute(
        """
        INSERT INTO journeys (organization_id, id, name, state, version, created_at, updated_at)
        VALUES (%s, %s, %s, 'draft', 0, %s, %s)
        """,
        (organization_id, journey_id, definition.name, tx.now, tx.now),
    )
    version_before = 0 if is_saved else UNSAVED - 1
    row = JourneyRow(journey_id, definition.name, "draft", version_before, None, None, tx.now, tx.now)
    return await _save_version(tx, organization_id, row, definition, created_by=created_by)


async def update_journey(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    definition: Definition,
    *,
    created_by: str | None = None,
) -> Journey:
    """Save a new version. A live journey uses the version for new runs at once, so it must have no faults; open runs
    continue with the version with which they started."""
    row = await queries.lock_journey(tx, organization_id, journey_id)
    if row.state == "archived":
        raise NotPossible("An archived journey cannot be changed.")
    journey = await _save_version(tx, organization_id, row, definition, created_by=created_by)
    if row.state == "live":
        require_no_faults(journey)
        await queries.end_activation(tx, organization_id, journey_id)
        journey = await _go_live(tx, organization_id, journey)
    return journey


async def load_journey(tx: Tx, organization_id: UUID, journey_id: UUID, *, version: int | None = None) -> Journey:
    row = await queries.find_journey(tx, organization_id, journey_id)
    return await _load_version(tx, organization_id, row, version=version)


async def list_journeys(tx: Tx, organization_id: UUID, *, limit: int) -> list[JourneyRow]:
    """Journeys, newest first."""
    return await tx.fetch_all(
        JourneyRow,
        "SELECT {columns} FROM journeys WHERE organization_id = %s ORDER BY id DESC LIMIT %s",
        (organization_id, limit),
    )


async def activate(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    *,
    waiting: WaitingRuns | None = None,
    by: str | None = None,
    etag: str | None = None,
) -> Journey:
    """Make a journey live: only sales and consents recorded from now on start runs. After a long pause, `waiting` says
    whether runs that waited continue or end. A journey that was never saved is saved. `etag` identifies the definition
    that the user saw."""
    row = await queries.lock_journey(tx, organization_id, journey_id)
    if row.state in {"live", "archived"}:
        raise NotPossible(f"This journey is {row.state}.")
    journey = await _load_version(tx, organization_id, row)
    require_etag(journey.definition, etag)
    require_no_faults(journey)
    is_long = row.paused_at is not None and tx.now - row.paused_at > LONG_PAUSE
    if is_long and waiting is None and await is_any_run_active(tx, organization_id, journey_id):
        raise NotPossible("It was paused for more than 48 hours; choose whether waiting runs continue or end.")
    if waiting == "end":
        await end_all_runs(tx, organization_id, journey_id, outcome="ended by a person")
    await resume(tx, organization_id, journey_id)
    if row.version == UNSAVED:
        journey = await _save_version(tx, organization_id, row, journey.definition, created_by=by)
        await queries.rebase_draft(tx, organization_id, journey_id, based_on=journey.row.version)
    return await _go_live(tx, organization_id, journey)


async def pause(tx: Tx, organization_id: UUID, journey_id: UUID) -> JourneyRow:
    """Pause a journey: no customer enters, no run advances and no text leaves. What waits is not read for this."""
    await lock_claims(tx, organization_id)
    row = await queries.lock_journey(tx, organization_id, journey_id)
    if row.state != "live":
        raise NotPossible(f"Only a live journey can be paused; this one is {row.state}.")
    await queries.end_activation(tx, organization_id, journey_id)
    await stop(tx, organization_id, journey_id)
    paused = row._replace(state="paused", live_version=None, paused_at=tx.now)
    await queries.update_journey(tx, organization_id, paused)
    tx.queues_to_wake.add(("journey_runs", organization_id))
    return paused


async def archive(tx: Tx, organization_id: UUID, journey_id: UUID) -> JourneyRow:
    """End the journey and its runs for good."""
    row = await queries.lock_journey(tx, organization_id, journey_id)
    await queries.end_activation(tx, organization_id, journey_id)
    await resume(tx, organization_id, journey_id)
    await end_all_runs(tx, organization_id, journey_id, outcome="archived")
    archived = row._replace(state="archived", live_version=None, paused_at=None)
    await queries.update_journey(tx, organization_id, archived)
    await register_uses(tx, organization_id, [], kind=KIND, used_by_id=journey_id)
    tx.queues_to_wake.add(("journey_runs", organization_id))
    return archived


async def _go_live(tx: Tx, organization_id: UUID, journey: Journey) -> Journey:
    row = journey.row._replace(state="live", live_version=journey.row.version, paused_at=None)
    await tx.execute(
        """
        INSERT INTO journey_activations (organization_id, journey_id, version, trigger, since)
        VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, journey_id, since)
        DO UPDATE SET version = EXCLUDED.version, trigger = EXCLUDED.trigger, until = NULL
        """,
        (organization_id, row.id, row.version, journey.definition.trigger, tx.now),
    )
    await queries.update_journey(tx, organization_id, row)
    await start_recording_facts(tx, organization_id)
    return Journey(row, journey.definition, journey.faults)


async def _save_version(
    tx: Tx, organization_id: UUID, row: JourneyRow, definition: Definition, *, created_by: str | None
) -> Journey:
    if empty := find_empty_texts(definition):
        raise DefinitionRefused(empty, "It cannot be saved: ")
    saved = row._replace(name=definition.name, version=row.version + 1)
    await tx.execute(
        """
        INSERT INTO journey_versions
            (organization_id, journey_id, version, definition, created_at, created_by, salts_splits)
        VALUES (%s, %s, %s, %s::json, %s, %s, true)
        """,
        (organization_id, row.id, saved.version, write_definition(definition).decode(), tx.now, created_by),
    )
    await queries.update_journey(tx, organization_id, saved)
    await _register_uses(tx, organization_id, saved, definition)
    return Journey(saved, definition, await check_definition(tx, organization_id, definition))


async def _register_uses(tx: Tx, organization_id: UUID, row: JourneyRow, definition: Definition) -> None:
    """Register the segments of the newest version, of the live version and of versions that open runs follow, so that
    none is deleted."""
    stored_definitions = await tx.fetch_column(
        """
        SELECT definition::text FROM journey_versions
        WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND (
            version = (
                SELECT live_version FROM journeys
                WHERE organization_id = %(organization_id)s AND id = %(journey_id)s
            )
            OR EXISTS (
                SELECT 1 FROM journey_runs
                WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND state <> 'ended'
                  AND version = journey_versions.version
            )
        )
        """,
        {"organization_id": organization_id, "journey_id": row.id},
    )
    segments = references_of(definition).segments
    for stored in stored_definitions:
        segments |= references_of(read_stored_definition(stored)[0]).segments
    await register_uses(tx, organization_id, SEGMENT.decode_all(segments), kind=KIND, used_by_id=row.id)


async def _load_version(tx: Tx, organization_id: UUID, row: JourneyRow, *, version: int | None = None) -> Journey:
    stored = await tx.fetch_value(
        """
        SELECT definition::text FROM journey_versions
        WHERE organization_id = %s AND journey_id = %s AND version = %s
        """,
        (organization_id, row.id, version or row.version),
    )
    if stored is None:
        raise NotFound("The journey has no such version.")
    definition, damage = read_stored_definition(stored)
    faults = damage + await check_definition(tx, organization_id, definition)
    return Journey(row, definition, faults, tuple(damage))


async def check_definition(tx: Tx, organization_id: UUID, definition: Definition) -> list[Fault]:
    """Find the faults of a definition, given the current segments, attributes and catalogs."""
    return find_faults(definition, await load_condition_context(tx, organization_id, [definition]))


def require_no_faults(journey: Journey) -> None:
    if journey.faults:
        raise DefinitionRefused(journey.faults, "It cannot run: ")


async def find_unevaluable_journeys(
    tx: Tx, organization_id: UUID, rows: Sequence[JourneyRow]
) -> dict[UUID, dict[str, str]]:
    """Why conditions of live journeys cannot be evaluated now, by journey and by location (`filter`, or a step id)."""
    live = {row.id: row.live_version for row in rows if row.live_version is not None}
    definitions = await load_shown_definitions(tx, organization_id, set(live.items()))
    context = await load_condition_context(tx, organization_id, set(definitions.values()))
    reasons = {journey_id: find_unevaluable(definition, context) for (journey_id, _), definition in definitions.items()}
    return {journey_id: by_location for journey_id, by_location in reasons.items() if by_location}


PATH: Final = "/journeys"
LISTED_MAX: Final = 200
# The effect of a new version of a segment on a journey that uses the segment, by the journey's state.
EFFECTS: Final = {
    "live": "It uses the new version from the next decision on; its customers stay until a branch checks the segment.",
    "paused": "It uses the new version when it is resumed.",
    "draft": "It is not live; it will use the version that is saved then.",
}


async def describe_uses(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Use]:
    """Describe journeys that use a segment, for a person who changes or deletes the segment."""
    rows = await tx.fetch_all(
        JourneyRow,
        "SELECT {columns} FROM journeys WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )
    return {
        row.id: Use(row.name, f"{PATH}/{JOURNEY.encode(row.id)}", KIND, row.state, EFFECTS.get(row.state, ""))
        for row in rows
    }


async def list_choices(tx: Tx, organization_id: UUID) -> list[tuple[str, str]]:
    """The ids and names of the journeys that a segment condition may refer to, newest first."""
    rows = await list_journeys(tx, organization_id, limit=LISTED_MAX)
    return [(JOURNEY.encode(row.id), row.name) for row in rows]
