"""The SQL of journeys, of their versions, and of activations: the periods in which a version is live."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.journeys.model import ActivationRow, JourneyRow
from regulars.kit.db import Tx
from regulars.kit.refusals import NotFound


async def update_journey(tx: Tx, organization_id: UUID, journey: JourneyRow) -> None:
    await tx.execute(
        """
        UPDATE journeys
        SET name = %(name)s, state = %(state)s, version = %(version)s, live_version = %(live_version)s,
            paused_at = %(paused_at)s, updated_at = %(now)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "now": tx.now, **journey._asdict()},
    )


async def rebase_draft(tx: Tx, organization_id: UUID, journey_id: UUID, *, based_on: int) -> None:
    """Let the draft, if there is one, follow a version with the definition from which the draft was made."""
    await tx.execute(
        "UPDATE journey_drafts SET based_on = %s WHERE organization_id = %s AND journey_id = %s",
        (based_on, organization_id, journey_id),
    )


_FIND: Final = "SELECT {columns} FROM journeys WHERE organization_id = %s AND id = %s"


async def find_journey(tx: Tx, organization_id: UUID, journey_id: UUID) -> JourneyRow:
    return _require(await tx.fetch_first(JourneyRow, _FIND, (organization_id, journey_id)))


async def lock_journey(tx: Tx, organization_id: UUID, journey_id: UUID) -> JourneyRow:
    return _require(await tx.fetch_first(JourneyRow, _FIND + " FOR UPDATE", (organization_id, journey_id)))


async def lock_journey_shared(tx: Tx, organization_id: UUID, journey_id: UUID) -> JourneyRow | None:
    """Load a journey with a shared lock, so that its state cannot change until this transaction ends; None if the
    organization is being deleted."""
    return await tx.fetch_first(JourneyRow, _FIND + " FOR SHARE", (organization_id, journey_id))


def _require(row: JourneyRow | None) -> JourneyRow:
    if row is None:
        raise NotFound("There is no journey with this id.")
    return row


async def find_definitions(
    tx: Tx, organization_id: UUID, keys: Sequence[tuple[UUID, int]]
) -> dict[tuple[UUID, int], tuple[str, bool]]:
    """The definitions by journey and version, each with whether its splits are independent of each other
    (`salts_splits`)."""
    rows = await tx.fetch(
        """
        SELECT found.journey_id, found.version, found.definition, found.salts_splits
        FROM unnest(%(journey_ids)s::uuid[], %(versions)s::integer[]) AS it (journey_id, version)
        CROSS JOIN LATERAL (
            SELECT journey_id, version, definition::text, salts_splits FROM journey_versions
            WHERE organization_id = %(organization_id)s AND journey_id = it.journey_id AND version = it.version
            LIMIT 1
        ) AS found
        """,
        {
            "organization_id": organization_id,
            "journey_ids": [journey_id for journey_id, _ in keys],
            "versions": [version for _, version in keys],
        },
    )
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


async def end_activation(tx: Tx, organization_id: UUID, journey_id: UUID) -> None:
    await tx.execute(
        """
        UPDATE journey_activations SET until = %s
        WHERE organization_id = %s AND journey_id = %s AND until IS NULL
        """,
        (tx.now, organization_id, journey_id),
    )


async def find_activations(
    tx: Tx, organization_id: UUID, triggers: list[str], *, since: datetime, until: datetime
) -> list[ActivationRow]:
    """The versions that were live at any time between `since` and `until`."""
    return await tx.fetch_all(
        ActivationRow,
        """
        SELECT journey_activations.journey_id, journey_activations.version, journey_activations.since,
               journey_activations.until, journey_versions.definition::text
        FROM journey_activations
        JOIN journey_versions ON journey_versions.organization_id = %(organization_id)s
            AND journey_versions.journey_id = journey_activations.journey_id
            AND journey_versions.version = journey_activations.version
        WHERE journey_activations.organization_id = %(organization_id)s
          AND journey_activations.trigger = ANY (%(triggers)s::text[])
          AND journey_activations.since <= %(until)s
          AND (journey_activations.until IS NULL OR journey_activations.until > %(since)s)
        ORDER BY journey_activations.journey_id, journey_activations.since
        """,
        {"organization_id": organization_id, "triggers": triggers, "since": since, "until": until},
    )


# SQL condition: any journey of the organization was ever live.
HAS_ACTIVATION: Final = "EXISTS (SELECT FROM journey_activations WHERE organization_id = %(organization_id)s)"
