"""Drive segments in an organization of its own."""

import asyncio
import json
from typing import Any
from uuid import UUID

from tests.journeys.desk import Desk as JourneyDesk

from regulars.catalog.entries import register_product_keys, retype
from regulars.catalog.model import AttributeType, Catalog
from regulars.columns import lifecycle
from regulars.columns.feed.build import run_batch
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY, SEGMENT
from regulars.segments.definition import Definition, read_definition
from regulars.segments.explain import MembershipExplanation, explain, find_segments_of
from regulars.segments.saved import manage


def definition(*conditions: dict[str, Any], name: str = "S", kind: str = "all") -> Definition:
    return read_definition(json.dumps({"name": name, "match": {"type": kind, "of": conditions}}).encode())


def line(sku: str | None = "A", *, cents: int = 1000, quantity: float = 1, **properties: Any) -> dict[str, Any]:
    product = None if sku is None else {"external_id": sku, "name": None, "properties": properties}
    return {"product": product, "quantity": quantity, "total_price_cents": cents}


class Desk(JourneyDesk):
    def segment(self, *conditions: dict[str, Any], name: str = "S", kind: str = "all") -> UUID:
        saved = self.do(
            lambda tx: manage.create_segment(tx, self.organization_id, definition(*conditions, name=name, kind=kind))
        )
        return saved.row.id

    def why(self, profile_id: UUID, *conditions: dict[str, Any], kind: str = "all") -> MembershipExplanation:
        match = definition(*conditions, kind=kind).match
        found = self.do(lambda tx: explain(tx, self.organization_id, match, profile_id))
        assert found is not None
        return found

    def holds(self, profile_id: UUID, *conditions: dict[str, Any], kind: str = "all") -> bool:
        return self.why(profile_id, *conditions, kind=kind).is_in

    def is_in(self, profile_id: UUID, segment_id: UUID) -> bool:
        wanted = SEGMENT.encode(segment_id)
        return bool(self.do(lambda tx: find_segments_of(tx, self.organization_id, [wanted], profile_id)))

    def journey_id(self, journey_id: UUID) -> str:
        return JOURNEY.encode(journey_id)

    def build_columns(self) -> None:
        """Until they are ready; a build waits for older transactions, of other tests too."""

        async def build() -> None:
            while not await self._is_ready():
                while await run_batch(self.database, self.organization_id):
                    pass
                await asyncio.sleep(0.05)

        self.runner.run(build())

    async def _is_ready(self) -> bool:
        async with self.database.transaction() as tx:
            progress = await lifecycle.find_build_progress(tx, self.organization_id)
        return progress is not None and progress.state == "ready"

    def declare(self, key: str, declared: AttributeType, *values: str) -> None:
        self.do(
            lambda tx: retype(
                tx, self.organization_id, Catalog.ATTRIBUTES, key, declared=declared, allowed_values=values
            )
        )

    def declare_property(self, key: str, declared: AttributeType, *values: str) -> None:
        async def act(tx: Tx) -> None:
            await register_product_keys(tx, self.organization_id, [key])
            await retype(tx, self.organization_id, Catalog.PRODUCTS, key, declared=declared, allowed_values=values)

        self.do(act)
