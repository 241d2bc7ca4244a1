"""Change how the values of a key are read.

Nothing is migrated and nothing refused: stored values stay as they are, and those that the new type cannot read stop
matching filters until the type changes again.
"""

from collections.abc import Sequence
from uuid import UUID

from regulars.catalog import queries
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry
from regulars.kit.db import Tx
from regulars.kit.errors import invalid

ALLOWED_VALUES_MAX = 1_000


async def retype_attribute(
    tx: Tx, organization_id: UUID, key: str, *, declared: AttributeType, allowed_values: Sequence[str] = ()
) -> CatalogEntry | None:
    """Give a profile attribute another type; None if nobody has used the key yet."""
    values = closed_list(declared, allowed_values)
    return await queries.retype(tx, organization_id, Catalog.ATTRIBUTES, key, declared=declared, allowed_values=values)


async def retype_product_property(
    tx: Tx, organization_id: UUID, key: str, *, declared: AttributeType, allowed_values: Sequence[str] = ()
) -> CatalogEntry | None:
    """Give a product property another type; None if nobody has used the key yet."""
    values = closed_list(declared, allowed_values)
    return await queries.retype(tx, organization_id, Catalog.PRODUCTS, key, declared=declared, allowed_values=values)


def closed_list(declared: AttributeType, allowed_values: Sequence[str]) -> list[str]:
    """An enum needs its list of values, each once; any other type has none."""
    if declared is not AttributeType.ENUM:
        return []
    values = list(dict.fromkeys(allowed_values))
    if not values:
        raise invalid("allowed_values", "REQUIRED", "An enum needs at least one allowed value.")
    if len(values) > ALLOWED_VALUES_MAX:
        raise invalid("allowed_values", "LENGTH", f"An enum may have {ALLOWED_VALUES_MAX} allowed values.")
    return values
