"""Find the home store of customers: the store with most purchases in 12 months; if several have as many, the one
visited last."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Ids
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at

WINDOW: Final = timedelta(days=365)
# If a customer has more purchases, only the last recorded ones count. A loyalty card that a cash register uses for all
# anonymous customers has tens of thousands.
PURCHASES_MAX: Final = 200
# A sale's id begins with the time of recording, by a server's clock that may be behind the cash register's.
_CLOCK_DIFFERENCE_MAX: Final = timedelta(hours=1)


class HomeStore(NamedTuple):
    id: UUID
    # The store's external id, if it has no name.
    name: str
    city: str | None
    country: str | None


async def find_home_stores(tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID]) -> dict[UUID, HomeStore]:
    """Find the home store of each profile; a profile without a purchase is not in the result."""
    since = tx.now - WINDOW
    rows = await tx.fetch(
        """
        SELECT it.profile_id, store.id, COALESCE(store.name, store.external_id), store.address ->> 'locality',
               store.address ->> 'country_code'
        FROM unnest(%(profile_ids)s::uuid[]) AS it (profile_id)
        CROSS JOIN LATERAL (
            SELECT purchase.store_id
            FROM (
                SELECT store_id, occurred_at FROM sales_events
                WHERE organization_id = %(organization_id)s AND profile_id = it.profile_id AND id >= %(first_id)s
                  AND occurred_at >= %(since)s AND type = 'PURCHASE'
                ORDER BY id DESC
                LIMIT %(limit)s
            ) AS purchase
            GROUP BY purchase.store_id
            ORDER BY count(*) DESC, max(purchase.occurred_at) DESC, purchase.store_id
            LIMIT 1
        ) AS home
        CROSS JOIN LATERAL (
            SELECT id, external_id, name, address FROM stores
            WHERE organization_id = %(organization_id)s AND id = home.store_id LIMIT 1
        ) AS store
        """,
        {
            "organization_id": organization_id,
            "profile_ids": Ids(profile_ids),
            "first_id": first_id_at(since - _CLOCK_DIFFERENCE_MAX),
            "since": since,
            "limit": PURCHASES_MAX,
        },
    )
    return {profile_id: HomeStore(*store) for profile_id, *store in rows}
