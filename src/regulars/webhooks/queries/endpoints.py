"""The SQL of endpoints: their settings, secrets and health."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.db import Tx
from regulars.webhooks.delivery.schedule import Health
from regulars.webhooks.model import Endpoint


class EncryptedSecrets(NamedTuple):
    """The encrypted secrets of an endpoint."""

    secret: bytes
    old_secret: bytes | None
    old_secret_until: datetime | None


_COLUMNS: Final = SQL(
    "id, url, description, event_types, state, disabled_at, disabled_by, created_at, updated_at, old_secret_until,"
    " failures, failing_since, last_success_at, is_slow, probe_at"
)


def _to_endpoint(row: Sequence[Any]) -> Endpoint:
    return Endpoint(*(*row[:3], tuple(row[3]), *row[4:10], Health(*row[10:])))


async def insert_endpoint(tx: Tx, organization_id: UUID, endpoint: Endpoint, *, secret: bytes) -> None:
    await tx.execute(
        """
        INSERT INTO webhook_endpoints
            (organization_id, id, url, description, event_types, secret, state, created_at, updated_at)
        VALUES (%(organization_id)s, %(id)s, %(url)s, %(description)s, %(event_types)s, %(secret)s, %(state)s,
                %(created_at)s, %(updated_at)s)
        """,
        {**_settings_of(organization_id, endpoint), "secret": secret},
    )


def _settings_of(organization_id: UUID, endpoint: Endpoint) -> dict[str, Any]:
    return {**endpoint._asdict(), "organization_id": organization_id, "event_types": list(endpoint.event_types)}


async def list_endpoints(tx: Tx, organization_id: UUID) -> list[Endpoint]:
    rows = await tx.fetch(
        SQL(
            "SELECT {columns} FROM webhook_endpoints WHERE organization_id = %s AND state <> 'deleted' ORDER BY id"
        ).format(columns=_COLUMNS),
        (organization_id,),
    )
    return [_to_endpoint(row) for row in rows]


async def lock_endpoint(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    rows = await tx.fetch(
        SQL(
            "SELECT {columns} FROM webhook_endpoints"
            " WHERE organization_id = %s AND id = %s AND state <> 'deleted' FOR UPDATE"
        ).format(columns=_COLUMNS),
        (organization_id, endpoint_id),
    )
    return _to_endpoint(rows[0]) if rows else None


async def update_endpoint_state(
    tx: Tx, organization_id: UUID, endpoint_id: UUID, *, state: str, disabled_by: str | None
) -> None:
    """Change the state, and reset the health."""
    await tx.execute(
        """
        UPDATE webhook_endpoints
        SET state = %(state)s, disabled_by = %(disabled_by)s, updated_at = %(now)s,
            disabled_at = CASE WHEN %(state)s = 'enabled' THEN NULL ELSE %(now)s END,
            failures = 0, failing_since = NULL, is_slow = false, probe_at = NULL
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {
            "organization_id": organization_id,
            "id": endpoint_id,
            "state": state,
            "disabled_by": disabled_by,
            "now": tx.now,
        },
    )


async def update_endpoint(tx: Tx, organization_id: UUID, endpoint: Endpoint) -> None:
    """Change the URL, the description and the events."""
    await tx.execute(
        """
        UPDATE webhook_endpoints
        SET url = %(url)s, description = %(description)s, event_types = %(event_types)s, updated_at = %(updated_at)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        _settings_of(organization_id, endpoint),
    )


async def find_secrets(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> EncryptedSecrets | None:
    return await tx.fetch_first(
        EncryptedSecrets,
        "SELECT {columns} FROM webhook_endpoints WHERE organization_id = %s AND id = %s",
        (organization_id, endpoint_id),
    )


async def list_secrets(tx: Tx) -> list[tuple[UUID, UUID, EncryptedSecrets]]:
    """Return the secrets of all endpoints of all organizations, to encrypt them with another key."""
    rows = await tx.fetch("SELECT organization_id, id, secret, old_secret, old_secret_until FROM webhook_endpoints")
    return [(row[0], row[1], EncryptedSecrets(*row[2:])) for row in rows]


async def update_secrets(tx: Tx, organization_id: UUID, endpoint_id: UUID, encrypted: EncryptedSecrets) -> None:
    await tx.execute(
        """
        UPDATE webhook_endpoints
        SET secret = %(secret)s, old_secret = %(old_secret)s, old_secret_until = %(old_secret_until)s,
            updated_at = %(now)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "id": endpoint_id, "now": tx.now, **encrypted._asdict()},
    )


async def find_receivers(tx: Tx, organization_id: UUID) -> list[tuple[UUID, list[str]]]:
    """Return the enabled endpoints and the event types they chose."""
    rows = await tx.fetch(
        "SELECT id, event_types FROM webhook_endpoints WHERE organization_id = %s AND state = 'enabled' ORDER BY id",
        (organization_id,),
    )
    return [(row[0], row[1]) for row in rows]


async def delete_unused_endpoints(tx: Tx, organization_id: UUID) -> None:
    """Delete the rows of deleted endpoints that have no deliveries left."""
    await tx.execute(
        """
        DELETE FROM webhook_endpoints e
        WHERE e.organization_id = %(organization_id)s AND e.state = 'deleted' AND NOT EXISTS (
            SELECT FROM webhook_deliveries d WHERE d.organization_id = %(organization_id)s AND d.endpoint_id = e.id
        )
        """,
        {"organization_id": organization_id},
    )


async def postpone_probes(tx: Tx, organization_id: UUID, endpoint_ids: Sequence[UUID], *, probe_at: datetime) -> None:
    await tx.execute(
        "UPDATE webhook_endpoints SET probe_at = %s WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (probe_at, organization_id, list(endpoint_ids)),
    )


async def lock_health(tx: Tx, organization_id: UUID, endpoint_ids: Sequence[UUID]) -> dict[UUID, Health]:
    """Return the health of these endpoints, without disabled ones, and lock their rows until the transaction ends."""
    rows = await tx.fetch(
        """
        SELECT id, failures, failing_since, last_success_at, is_slow, probe_at
        FROM webhook_endpoints
        WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND state = 'enabled'
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, list(endpoint_ids)),
    )
    return {row[0]: Health(*row[1:]) for row in rows}


async def update_health(tx: Tx, organization_id: UUID, endpoint_id: UUID, health: Health) -> None:
    await tx.execute(
        """
        UPDATE webhook_endpoints
        SET failures = %(failures)s, failing_since = %(failing_since)s, last_success_at = %(last_success_at)s,
            is_slow = %(is_slow)s, probe_at = %(probe_at)s
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "id": endpoint_id, **health._asdict()},
    )
