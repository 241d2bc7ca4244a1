"""Create, change, disable, enable and delete webhook endpoints; rotate and show the secrets that sign deliveries."""

from collections.abc import Sequence
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.kit.refusals import NotFound, NotPossible, Refused
from regulars.kit.ssrf import AddressPolicy, AddressRefused
from regulars.kit.vault import AnyVault, lock_key
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.delivery.schedule import Health
from regulars.webhooks.interests import register_interests, withdraw_interests
from regulars.webhooks.model import (
    DEFAULT_EVENT_TYPES,
    DESCRIPTION_CHARACTERS_MAX,
    ENDPOINTS_MAX,
    OLD_SECRET_FOR,
    Endpoint,
    State,
    find_unknown_types,
)
from regulars.webhooks.queries import endpoints as queries
from regulars.webhooks.queries.endpoints import EncryptedSecrets
from regulars.webhooks.secrets import decrypt_valid_secrets, encrypt_secret, format_secret, new_secret

_NO_SUCH_ENDPOINT: Final = "There is no webhook endpoint with this id; list them to see their ids."
_SELECT_ENDPOINTS: Final[LiteralString] = """
    SELECT id, url, description, event_types, state, disabled_at, disabled_by, created_at, updated_at, old_secret_until,
           failures, failing_since, last_success_at, is_slow, probe_at
    FROM webhook_endpoints
    WHERE organization_id = %s AND state <> 'deleted'
"""


class EndpointRefused(Refused):
    """The URL, the events or the description is not allowed."""


class EndpointWithSecret(NamedTuple):
    endpoint: Endpoint
    secret: str


async def create_endpoint(
    tx: Tx,
    organization_id: UUID,
    *,
    url: str,
    description: str = "",
    event_types: Sequence[str] = DEFAULT_EVENT_TYPES,
    policy: AddressPolicy,
    vault: AnyVault,
    is_draft: bool = False,
) -> EndpointWithSecret:
    """Create an endpoint with its own secret; a draft is disabled until an admin enables it. Raises EndpointRefused."""
    types = _check_fields(url=url, description=description, event_types=event_types, policy=policy)
    await lock_key(tx.connection, vault)
    if len(await list_endpoints(tx, organization_id)) >= ENDPOINTS_MAX:
        raise EndpointRefused(f"An organization can have {ENDPOINTS_MAX} endpoints; delete one that is not needed.")
    identifier, secret = new_uuid(), new_secret()
    state: State = "disabled" if is_draft else "enabled"
    endpoint = Endpoint(identifier, url, description, types, state, None, None, tx.now, tx.now, None, Health())
    encrypted = encrypt_secret(vault, identifier, secret)
    await queries.insert_endpoint(tx, organization_id, endpoint, secret=encrypted)
    if not is_draft:
        await register_interests(tx, organization_id, identifier, endpoint.events)
    return EndpointWithSecret(endpoint, format_secret(secret))


async def list_endpoints(tx: Tx, organization_id: UUID) -> list[Endpoint]:
    rows = await tx.fetch(_SELECT_ENDPOINTS + "ORDER BY id", (organization_id,))
    return [_to_endpoint(row) for row in rows]


async def lock_endpoint(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> Endpoint:
    """Load an endpoint and lock its row until the transaction ends; raises `NotFound` if there is none."""
    rows = await tx.fetch(_SELECT_ENDPOINTS + "AND id = %s FOR UPDATE", (organization_id, endpoint_id))
    if not rows:
        raise NotFound(_NO_SUCH_ENDPOINT)
    return _to_endpoint(rows[0])


def _to_endpoint(row: Sequence[Any]) -> Endpoint:
    return Endpoint(*(*row[:3], tuple(row[3]), *row[4:10], Health(*row[10:])))


async def change_endpoint(
    tx: Tx,
    organization_id: UUID,
    endpoint_id: UUID | None,
    *,
    url: str,
    description: str,
    event_types: Sequence[str],
    policy: AddressPolicy,
) -> Endpoint:
    """Change URL, description or events; waiting deliveries go to the new URL."""
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    types = _check_fields(url=url, description=description, event_types=event_types, policy=policy)
    changed = endpoint._replace(url=url, description=description, event_types=types, updated_at=tx.now)
    await queries.update_endpoint(tx, organization_id, changed)
    if endpoint.state == "enabled":
        await withdraw_interests(tx, organization_id, endpoint.id)
        await register_interests(tx, organization_id, endpoint.id, changed.events)
    return changed


async def disable_endpoint(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> Endpoint:
    """Disable the endpoint: put its waiting deliveries on hold, and create no more events for it. No effect if it is
    disabled already."""
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    if endpoint.state == "disabled":
        return endpoint
    await queries.update_endpoint_state(tx, organization_id, endpoint.id, state="disabled", disabled_by="person")
    await withdraw_interests(tx, organization_id, endpoint.id)
    return endpoint._replace(
        state="disabled", disabled_by="person", disabled_at=tx.now, updated_at=tx.now, health=Health()
    )


async def enable_endpoint(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> Endpoint:
    """Enable the endpoint: send its deliveries on hold, and create events for it again."""
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    if endpoint.state == "enabled":
        return endpoint
    await queries.update_endpoint_state(tx, organization_id, endpoint.id, state="enabled", disabled_by=None)
    enabled = endpoint._replace(state="enabled", disabled_by=None, disabled_at=None, updated_at=tx.now, health=Health())
    await register_interests(tx, organization_id, endpoint.id, enabled.events)
    # Wakes the worker after the commit.
    tx.queues_to_wake.add((DeliveryQueue.name, organization_id))
    return enabled


async def delete_endpoint(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> None:
    """Delete the endpoint: nothing more is sent to it, and no list shows it. Its row stays until its last delivery is
    deleted."""
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    await queries.update_endpoint_state(tx, organization_id, endpoint.id, state="deleted", disabled_by="person")
    await withdraw_interests(tx, organization_id, endpoint.id)


async def withdraw_draft(tx: Tx, organization_id: UUID, endpoint_id: UUID | None) -> None:
    """Delete a draft; raises `NotPossible` once an admin approved it."""
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    if not endpoint.is_draft:
        raise NotPossible("This endpoint is no draft any more; an admin can delete it.")
    await delete_endpoint(tx, organization_id, endpoint.id)


async def rotate_secret(
    tx: Tx, organization_id: UUID, endpoint_id: UUID | None, *, vault: AnyVault
) -> EndpointWithSecret:
    """Create a new secret. The previous secret also signs for 24 hours; older secrets do not sign any more."""
    await lock_key(tx.connection, vault)
    endpoint = await lock_endpoint(tx, organization_id, endpoint_id)
    stored = await _find_secrets(tx, organization_id, endpoint.id)
    secret = new_secret()
    until = tx.now + OLD_SECRET_FOR
    encrypted = EncryptedSecrets(encrypt_secret(vault, endpoint.id, secret), stored.secret, until)
    await queries.update_secrets(tx, organization_id, endpoint.id, encrypted)
    return EndpointWithSecret(endpoint._replace(old_secret_until=until, updated_at=tx.now), format_secret(secret))


async def decrypt_secrets(tx: Tx, organization_id: UUID, endpoint_id: UUID | None, *, vault: AnyVault) -> list[bytes]:
    """Return the secrets that sign now: the current one, and for 24 hours after a rotation the previous one."""
    if endpoint_id is None:
        raise NotFound(_NO_SUCH_ENDPOINT)
    stored = await _find_secrets(tx, organization_id, endpoint_id)
    return decrypt_valid_secrets(vault, endpoint_id, stored, now=tx.now)


async def reveal_secrets(tx: Tx, organization_id: UUID, endpoint_id: UUID | None, *, vault: AnyVault) -> list[str]:
    """Return the secrets that sign now in their text form, for the user who sets up a receiver."""
    return [format_secret(secret) for secret in await decrypt_secrets(tx, organization_id, endpoint_id, vault=vault)]


def require_enabled(endpoint: Endpoint) -> None:
    if endpoint.state != "enabled":
        raise NotPossible("The endpoint is disabled; enable it first.")


async def _find_secrets(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> EncryptedSecrets:
    stored = await tx.fetch_first(
        EncryptedSecrets,
        "SELECT {columns} FROM webhook_endpoints WHERE organization_id = %s AND id = %s",
        (organization_id, endpoint_id),
    )
    if stored is None:
        raise NotFound(_NO_SUCH_ENDPOINT)
    return stored


def _check_fields(*, url: str, description: str, event_types: Sequence[str], policy: AddressPolicy) -> tuple[str, ...]:
    """Return the event types without duplicates; raises EndpointRefused for values that no endpoint may have."""
    try:
        policy.read_url(url)
    except AddressRefused as refusal:
        raise EndpointRefused(str(refusal)) from None
    if len(description) > DESCRIPTION_CHARACTERS_MAX or "\0" in description:
        raise EndpointRefused(f"A description has at most {DESCRIPTION_CHARACTERS_MAX} characters.")
    if not event_types:
        raise EndpointRefused("Choose at least one type of event, such as profile.*.")
    if unknown := find_unknown_types(event_types):
        raise EndpointRefused(f"'{unknown[0]}' is no type of event; docs/webhooks.md lists them all.")
    return tuple(dict.fromkeys(event_types))
