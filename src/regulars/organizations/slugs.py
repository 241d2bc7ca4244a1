"""The slug of an organization, its name in page addresses: made from its name, and changeable; old slugs redirect."""

import re
import unicodedata
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.connection import Connection

SLUG_CHARACTERS_MAX: Final = 48
NAME_CHARACTERS_USED: Final = 40
FALLBACK: Final = "organization"
SLUG: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# When this many slugs with a number are taken, an organization gets its id as a suffix.
NUMBERS_TRIED_MAX: Final = 20


def slug_of(name: str) -> str:
    """Return a slug for a name: `Maison Corvelle & Fils` becomes `maison-corvelle-fils`. Accents are dropped, and a
    name in another script gets the fallback."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:NAME_CHARACTERS_USED].strip("-") or FALLBACK


def is_slug(text: str) -> bool:
    return len(text) <= SLUG_CHARACTERS_MAX and SLUG.fullmatch(text) is not None


async def ensure_slug(connection: Connection, organization_id: UUID, name: str, *, now: datetime) -> str:
    """Return the current slug; create one for an organization that has none, such as one of an older release."""
    base = slug_of(name)
    candidates = [
        base,
        *(f"{base}-{number}" for number in range(2, NUMBERS_TRIED_MAX)),
        f"{base[:12]}-{organization_id}",
    ]
    for candidate in candidates:
        current = await _find_current_slug(connection, organization_id)
        if current is not None:
            return current
        # Unique keys resolve races: on the slug, with other organizations; on the current slug, with other requests of
        # this organization.
        await connection.change(
            "INSERT INTO organization_slugs (slug, organization_id, is_current, created_at) VALUES (%s, %s, true, %s)"
            " ON CONFLICT DO NOTHING",
            (candidate, organization_id, now),
        )
    current = await _find_current_slug(connection, organization_id)
    if current is None:
        raise LookupError(f"No slug could be found for the organization {organization_id}.")
    return current


async def _find_current_slug(connection: Connection, organization_id: UUID) -> str | None:
    rows = await connection.fetch(
        "SELECT slug FROM organization_slugs WHERE organization_id = %s AND is_current", (organization_id,)
    )
    return rows[0][0] if rows else None


async def change_slug(connection: Connection, organization_id: UUID, slug: str, *, now: datetime) -> bool:
    """Change the slug, also to one that the organization had before; return False if another organization has or had
    it. Call it in a transaction."""
    owners = await connection.fetch("SELECT organization_id FROM organization_slugs WHERE slug = %s", (slug,))
    if owners and owners != [(organization_id,)]:
        return False
    await connection.change(
        "UPDATE organization_slugs SET is_current = false WHERE organization_id = %s AND is_current",
        (organization_id,),
    )
    changed = await connection.change(
        "INSERT INTO organization_slugs (slug, organization_id, is_current, created_at) VALUES (%s, %s, true, %s)"
        " ON CONFLICT (slug) DO UPDATE SET is_current = true"
        " WHERE organization_slugs.organization_id = excluded.organization_id",
        (slug, organization_id, now),
    )
    return changed == 1
