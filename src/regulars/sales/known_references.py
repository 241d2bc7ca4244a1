"""The stores and property keys that the hot path has met, by organization, and the statements that look them up.

Entries never expire: a store's code and id never change, and neither a store nor a property key is ever deleted.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Texts, read_uuids
from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.connection import Connection, Prepared
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError
from regulars.kit.ids import STORE
from regulars.sales.encode import ReferenceOut
from regulars.sales.model import SaleOutcome
from regulars.sales.statements import Store

STORES_CACHED_MAX = 100_000
ORGANIZATIONS_CACHED_MAX = 10_000
PROPERTY_KEYS_CACHED_MAX = 10_000

# External ids are looked up one at a time, for the reason that `sales/queries.py` gives. The result has an id, or null,
# for each external id in order.
_FIND_IDS: Final[LiteralString] = "SELECT ARRAY(SELECT (SELECT id FROM "
_WITH_EXTERNAL_ID: Final[LiteralString] = """
    WHERE organization_id = $1::uuid AND external_id = wanted.external_id)
    FROM unnest($2::text[]) WITH ORDINALITY AS wanted (external_id, ordinal) ORDER BY ordinal
)
"""
_FIND_PROPERTY_KEYS: Final = Prepared(
    b"find_property_keys",
    """
SELECT found.key FROM unnest($2::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT key FROM product_properties WHERE organization_id = $1::uuid AND key = wanted.key LIMIT 1
) AS found
""",
)
_FIND_FIRST_STORES: Final = Prepared(
    b"first_stores", "SELECT external_id, id FROM stores WHERE organization_id = $1::uuid ORDER BY id LIMIT 1000"
)
_FIND_PROFILES: Final = Prepared(b"find_profiles", _FIND_IDS + "profiles" + _WITH_EXTERNAL_ID)
_FIND_STORES: Final = Prepared(b"find_stores", _FIND_IDS + "stores" + _WITH_EXTERNAL_ID)


class References(NamedTuple):
    """Stores by external id, and published property keys, of an organization."""

    stores: BoundedCache[str, Store]
    property_keys: BoundedCache[str, None]

    def add_stores(self, ids_by_code: Iterable[tuple[str, bytes | None]]) -> None:
        for code, identifier in ids_by_code:
            if identifier is not None:
                self.stores.add(code, Store(identifier, ReferenceOut(STORE.encode(UUID(bytes=identifier)), code)))


class KnownReferences:
    """There is one object per process."""

    def __init__(self) -> None:
        self.by_organization: Final = BoundedCache[UUID, References](ORGANIZATIONS_CACHED_MAX)

    async def load(
        self, connection: Connection, organization_id: UUID, *, codes: set[str], property_keys: Collection[str]
    ) -> References:
        """Return the references of the organization, with these stores and property keys if they exist."""
        known = self.by_organization.entries.get(organization_id)
        if known is None:
            new = References(BoundedCache(STORES_CACHED_MAX), BoundedCache(PROPERTY_KEYS_CACHED_MAX))
            known = self.by_organization.add(organization_id, new)
            # All stores are loaded at once; otherwise the first sale of each store would need a query.
            known.add_stores(await _find_first_stores(connection, organization_id))
        if missing := sorted(codes - known.stores.entries.keys()):
            ids = await _find_ids(connection, _FIND_STORES, organization_id, missing)
            known.add_stores(zip(missing, ids, strict=True))
        if unpublished := sorted(property_keys - known.property_keys.entries.keys()):
            result = await connection.run(_FIND_PROPERTY_KEYS, [organization_id.bytes, Texts(unpublished).payload])
            for row in range(result.ntuples):
                known.property_keys.add((result.get_value(row, 0) or b"").decode(), None)
        return known

    def remember_published_keys(
        self, tx: Tx, organization_id: UUID, outcomes: Iterable[SaleOutcome | ApiError]
    ) -> None:
        """Count the property keys of these sales as published, once the transaction of the fallback path is committed:
        its fact names them, and no worker needs to run for the next sale with them to take the fast path."""
        new = [outcome.sale for outcome in outcomes if isinstance(outcome, SaleOutcome) and outcome.is_new]

        def remember(is_committed: bool) -> None:
            known = self.by_organization.entries.get(organization_id)
            if is_committed and known is not None:
                for key in {key for sale in new for key in sale.ticket.property_keys}:
                    known.property_keys.add(key, None)

        tx.end_callbacks.append(remember)


async def find_profiles(
    connection: Connection, organization_id: UUID, external_ids: Sequence[str]
) -> dict[str, bytes | None]:
    """Return the id of each customer, or None."""
    ids = await _find_ids(connection, _FIND_PROFILES, organization_id, external_ids)
    return dict(zip(external_ids, ids, strict=True))


async def _find_ids(
    connection: Connection, statement: Prepared, organization_id: UUID, external_ids: Sequence[str]
) -> list[bytes | None]:
    [ids] = await connection.fetch_row(statement, [organization_id.bytes, Texts(external_ids).payload])
    return read_uuids(ids)


async def _find_first_stores(connection: Connection, organization_id: UUID) -> list[tuple[str, bytes]]:
    """Return the external ids and ids of all stores, or of the first thousand."""
    result = await connection.run(_FIND_FIRST_STORES, [organization_id.bytes])
    return [
        ((result.get_value(row, 0) or b"").decode(), result.get_value(row, 1) or b"") for row in range(result.ntuples)
    ]
