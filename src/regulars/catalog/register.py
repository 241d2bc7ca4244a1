"""Register keys on first use: nobody has to declare an attribute before sending it."""

from collections.abc import Collection, Mapping
from uuid import UUID

from regulars.catalog import queries
from regulars.catalog.model import AttributeType, Catalog, infer_type, looks_like_code
from regulars.kit.db import Tx

# Keys are indexed, and an entry of a PostgreSQL index holds some 2,700 bytes. A longer product key is stored with its
# sale like any other and is only left out of the catalog.
PRODUCT_KEY_BYTES_MAX = 2_000


async def register_attributes(tx: Tx, organization_id: UUID, first_values: Mapping[str, str]) -> None:
    """Register the unknown keys among these, each with the type of its first value.

    Two transactions may meet the same new key: the insert of the second waits for the first and then does nothing, so
    the first value to be committed decides the type. Keys go in sorted, so two that meet twice cannot block each other.
    """
    if not first_values:
        return
    known = await queries.find_known_keys(tx, organization_id, Catalog.ATTRIBUTES, sorted(first_values))
    unknown = [
        queries.NewAttribute(key, infer_type(value), looks_like_code(value))
        for key, value in first_values.items()
        if key not in known
    ]
    if unknown:
        await queries.insert_attributes_if_new(tx, organization_id, unknown)


async def register_product_keys(tx: Tx, organization_id: UUID, keys: Collection[str]) -> None:
    """Register the unknown keys among these as text, the type every product property starts with."""
    indexable = sorted({key for key in keys if len(key.encode()) <= PRODUCT_KEY_BYTES_MAX})
    if not indexable:
        return
    known = await queries.find_known_keys(tx, organization_id, Catalog.PRODUCTS, indexable)
    unknown = [key for key in indexable if key not in known]
    if unknown:
        await queries.insert_product_keys_if_new(tx, organization_id, unknown, declared=AttributeType.TEXT)
