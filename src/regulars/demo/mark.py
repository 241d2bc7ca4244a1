"""An organization with made-up customers is marked before the first of them is there."""

from uuid import UUID

from regulars.kit.db import Database
from regulars.messaging.settings.store import lock_texting
from regulars.organizations.manage import mark_as_demo


class TextsForReal(Exception):
    """The organization texts people, and made-up customers have numbers that may be somebody's."""

    def __init__(self) -> None:
        super().__init__("This organization texts through Twilio; the demo fills only one that simulates.")


async def mark(database: Database, organization_id: UUID) -> None:
    """From now on it only simulates; one that has a real provider is left as it is, and refused."""
    async with database.transaction() as tx:
        texting = await lock_texting(tx, organization_id)
        if texting is not None and texting.provider != "simulator":
            raise TextsForReal
        await mark_as_demo(tx.connection, organization_id)
