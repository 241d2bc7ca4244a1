"""Find the organization and the destination of a short link, and list the clicks of a customer."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.links import link_rows as queries
from regulars.links.model import ClickOfPerson


async def find_destinations(tx: Tx, organization_id: UUID, codes: Collection[str]) -> dict[str, str]:
    """The URL of each code; a code that does not exist is absent."""
    return {code: link.url for code, link in (await queries.find_links(tx, organization_id, codes)).items()}


async def find_organization(tx: Tx, prefix: str) -> UUID | None:
    """The organization whose short codes begin with this prefix."""
    return await tx.fetch_value("SELECT organization_id FROM link_prefixes WHERE prefix = %s", (prefix,))


async def list_clicks_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Collection[bytes], after: UUID, limit: int
) -> list[ClickOfPerson]:
    del number_hashes  # other data of a customer is also found by number, but a link has only a profile
    return await tx.fetch_all(
        ClickOfPerson,
        """
        SELECT clicks.id, links.url, clicks.minute, clicks.class
        FROM links
        JOIN clicks ON clicks.organization_id = %(organization_id)s AND clicks.code = links.code
        WHERE links.organization_id = %(organization_id)s AND links.profile_id = %(profile_id)s
          AND clicks.id > %(after)s
        ORDER BY clicks.id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "profile_id": profile_id, "after": after, "limit": limit},
    )
