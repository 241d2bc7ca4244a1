"""Count the stored values of profile attributes, for the pages of the attribute catalog."""

from datetime import datetime
from uuid import UUID

from regulars.catalog.counts.counting import ChangingSource
from regulars.catalog.counts.model import ValueCount
from regulars.kit.db import Tx


class AttributeValues(ChangingSource):
    table = "profiles"

    async def has_changed(self, tx: Tx, organization_id: UUID, *, since: datetime) -> bool:
        changed = await tx.fetch(
            "SELECT FROM profiles WHERE organization_id = %s AND updated_at >= %s LIMIT 1", (organization_id, since)
        )
        return bool(changed)

    async def count_values(
        self, tx: Tx, organization_id: UUID, key: str | None, *, after: UUID, until: UUID
    ) -> list[ValueCount]:
        if key is None:
            rows = await tx.fetch(
                """
                SELECT a.key, a.value, count(*)
                FROM (
                    SELECT attributes FROM profiles WHERE organization_id = %s AND id > %s AND id <= %s
                ) AS p
                CROSS JOIN LATERAL jsonb_each_text(p.attributes) AS a (key, value)
                GROUP BY 1, 2
                """,
                (organization_id, after, until),
            )
            return [ValueCount(*row) for row in rows]
        rows = await tx.fetch(
            """
            SELECT attributes ->> %(key)s, count(*) FROM profiles
            WHERE organization_id = %(organization_id)s AND id > %(after)s AND id <= %(until)s
              AND jsonb_exists(attributes, %(key)s)
            GROUP BY 1
            """,
            {"organization_id": organization_id, "key": key, "after": after, "until": until},
        )
        return [ValueCount(key, *row) for row in rows]
