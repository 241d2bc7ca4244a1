"""Find the organization and the destination of a short link, and list the clicks of a customer."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.links import queries
from regulars.messaging.links.model import ClickOfPerson


async def find_organization(tx: Tx, prefix: str) -> UUID | None:
    """The organization whose short codes begin with this prefix."""
    return await queries.find_organization(tx, prefix)


async def find_destinations(tx: Tx, organization_id: UUID, codes: Collection[str]) -> dict[str, str]:
    """The URL of each code; a code that does not exist is absent."""
    return {code: link.url for code, link in (await queries.find_links(tx, organization_id, codes)).items()}


async def list_clicks_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Collection[bytes], after: UUID, limit: int
) -> list[ClickOfPerson]:
    del number_hashes  # other data of a customer is also found by number, but a link has only a profile
    return await queries.list_clicks_of_person(tx, organization_id, profile_id=profile_id, after=after, limit=limit)
