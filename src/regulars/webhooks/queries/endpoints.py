"""The SQL of endpoints: their settings, secrets and health."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.webhooks.delivery.schedule import Health
from regulars.webhooks.model import Endpoint


class EncryptedSecrets(NamedTuple):
    """The encrypted secrets of an endpoint."""

    secret: bytes
    old_secret: bytes | None
    old_secret_until: datetime | None


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
