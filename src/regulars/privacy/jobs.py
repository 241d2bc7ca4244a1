"""What the worker does after an erasure."""

from collections.abc import Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.privacy.facts import ProfileErased
from regulars.sales.anonymise import anonymise_sales


async def anonymise_stragglers(tx: Tx, organization_id: UUID, facts: Sequence[ProfileErased]) -> None:
    """Make a sale anonymous whose customer was erased while it was being written.

    The hot path of sales neither locks the profile nor has a foreign key to it, so an erasure may commit between its
    look and its insert. By the time this runs every statement of that moment has ended.
    """
    await anonymise_sales(tx, organization_id, [fact.profile_id for fact in facts])
