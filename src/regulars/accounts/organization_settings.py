"""Change the settings of an organization, and record the change in the audit log."""

from dataclasses import asdict
from uuid import UUID

from regulars.accounts.audit.log import Actor, record
from regulars.kit.db import Tx
from regulars.organizations.settings import OrganizationSettings, change_settings, find_settings, refuse_foreign_zone
from regulars.organizations.slugs import change_slug, ensure_slug
from regulars.web.format import LOCALES


class SlugTaken(Exception):
    """Another organization has or had this slug."""


def known_locales() -> list[str]:
    """Return the locales that pages support."""
    return list(LOCALES)


async def change_organization(
    tx: Tx, organization_id: UUID, settings: OrganizationSettings, *, slug: str, by: Actor
) -> str:
    """Change settings and slug, the name in page addresses; return the slug. The audit log gets only what changed."""
    before = await find_settings(tx.connection, organization_id)
    refuse_foreign_zone(before, settings)
    old_slug = await ensure_slug(tx.connection, organization_id, before.name, now=tx.now)
    await change_settings(tx, organization_id, settings)
    if slug != old_slug and not await change_slug(tx.connection, organization_id, slug, now=tx.now):
        raise SlugTaken
    old, new = {**asdict(before), "slug": old_slug}, {**asdict(settings), "slug": slug}
    changed = [name for name in new if old[name] != new[name]]
    if changed:
        await record(
            tx,
            organization_id,
            by,
            "organization.change",
            settings.name,
            before={name: old[name] for name in changed},
            after={name: new[name] for name in changed},
        )
    return slug
