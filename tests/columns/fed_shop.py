"""An organization whose columns are fed and built by hand, turn by turn, and counted in this process."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from tests.support.desk import Desk

from regulars.analysis.engine import Engine
from regulars.catalog.entries import find_types
from regulars.catalog.model import Catalog
from regulars.columns import lifecycle
from regulars.columns.engine.compaction import compact
from regulars.columns.feed.build import run_batch
from regulars.columns.protocol import AnalysisRequest, AnalysisResponse, SegmentCounts, SegmentQuery
from regulars.conditions.tree import Group, attributes_of, properties_of, stores_of
from regulars.kit.db import Database, Tx
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.privacy.erase import erase_profiles
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.segments.definition import read_definition
from regulars.segments.saved.resolve import query_of, resolve
from regulars.texts.facts import MessagesChanged
from regulars.work import outbox
from regulars.work.outbox import OutboxQueue
from regulars.worker import LISTENERS

T = TypeVar("T")
ZONE = "Europe/Paris"
OUR_LISTENERS = {
    kind: {name: listener for name, listener in by_name.items() if name.startswith(("segments.", "catalog."))}
    for kind, by_name in LISTENERS.items()
}


class FedShop(Desk):
    def __init__(self, runner: asyncio.Runner, database: Database) -> None:
        super().__init__(runner, database)
        self.engine = Engine(database, bytes_max=256 << 20)
        self.move_to_zone(ZONE)
        self.stores = {name: self.store(name) for name in ("LYO", "PAR")}

    # What happens in the shop.

    def moment(self, now: datetime, ago: timedelta) -> datetime:
        """Whole days back it is the same time by the shop's clock, in summer and in winter."""
        days = timedelta(days=ago.days)
        local = now.astimezone(ZoneInfo(self.zone))
        # A difference forgets which of the two hours it is when the clock is put back.
        return (local - days).replace(fold=local.fold).astimezone(UTC) - (ago - days)

    async def customer_now(self, name: str, attributes: Mapping[str, str]) -> None:
        upsert = ProfileUpsert(external_id=name, attributes=attributes)
        async with self.database.transaction() as tx:
            await upsert_profiles(tx, self.organization_id, [upsert])

    def sale(self, name: str | None, **given: Any) -> None:
        self.runner.run(self.sale_now(name, **given))

    async def sale_now(
        self,
        name: str | None,
        *,
        kind: str = "PURCHASE",
        amount: int = 1000,
        ago: timedelta = timedelta(0),
        at: datetime | None = None,
        store: str = "LYO",
        currency: str = "EUR",
        discount: int = 0,
        tax: int | None = None,
        lines: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        items = [{"quantity": 1, "total_price_cents": amount, **line} for line in lines]

        async with self.database.transaction() as tx:
            sale = Sale(
                external_id=str(uuid4()),
                type=kind,
                occurred_at=at or self.moment(tx.now, ago),
                store=ByExternalId(store),
                profile=None if name is None else ByExternalId(name),
                currency=currency,
                total_amount_cents=amount,
                total_discount_cents=discount,
                total_tax_cents=tax,
                source=None,
                payments=None,
                loyalty=None,
                metadata=None,
                line_items=json.dumps(items).encode(),
                property_keys=frozenset(
                    key for item in items for key in ((item.get("product") or {}).get("properties") or {})
                ),
            )
            [outcome] = await record_sales(tx, self.organization_id, [sale], tolerance=timedelta(seconds=30))
        assert outcome.is_new

    def move_to_zone(self, zone: str) -> None:
        self.zone = zone
        change = "UPDATE organizations SET time_zone = %s WHERE id = %s"
        self.do(lambda tx: tx.execute(change, (zone, self.organization_id)))

    def text(
        self,
        name: str,
        *,
        ago: timedelta,
        journey: UUID | None = None,
        campaign: UUID | None = None,
        state: str = "sent",
        previous_state: str | None = None,
    ) -> None:
        """A text that left, as its sender leaves it, and the fact that it did."""
        text_id, run_id = new_uuid(), campaign or new_uuid()
        kind = "campaign" if campaign else "person" if journey is None else "journey"
        [(profile_id,)] = self.sql("SELECT id FROM profiles WHERE organization_id = %s AND external_id = %s", name)

        step = str(profile_id) if campaign else "1"

        async def act(tx: Tx) -> None:
            at = self.moment(tx.now, ago)
            if journey is not None:
                await tx.execute(
                    "INSERT INTO journey_runs (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id,"
                    " state, entered_at, ended_at) VALUES (%s, %s, %s, 1, 'sale', %s, %s, 'ended', %s, %s)",
                    (self.organization_id, run_id, journey, str(run_id), profile_id, at, at),
                )
            await tx.execute(
                "INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, body, parts, state,"
                " expires_at, created_at, claimed_at) VALUES (%s, %s, %s, %s, %s, %s, 'Hello', 1, %s, %s, %s, %s)",
                (self.organization_id, text_id, kind, run_id, step, profile_id, state, at, at, at),
            )
            fact = MessagesChanged(
                "text", text_id, kind, run_id, step, profile_id, state, previous_state=previous_state
            )
            await outbox.record(tx, self.organization_id, [fact])

        self.do(act)

    def erase(self, name: str) -> None:
        self.do(lambda tx: erase_profiles(tx, self.organization_id, [ByExternalId(name)], secret=self.secret))

    # What the worker and the analysis process do.

    def begin(self) -> None:
        self.do(lambda tx: lifecycle.begin(tx, self.organization_id))

    def build(self) -> None:
        async def run() -> None:
            while await run_batch(self.database, self.organization_id) or await self.is_building():
                pass

        self.runner.run(run())

    def begin_and_build(self) -> None:
        self.begin()
        self.build()

    async def is_building(self) -> bool:
        """What waits for older transactions, of other tests too, is due again in a moment."""
        async with self.database.transaction() as tx:
            progress = await lifecycle.find_build_progress(tx, self.organization_id)
        if progress is not None and progress.state == "building":
            await asyncio.sleep(0.05)
            return True
        return False

    def drain(self) -> None:
        self.turn(OutboxQueue(OUR_LISTENERS))

    def compact(self, *, purge_after: timedelta = timedelta(hours=12)) -> bool:
        return self.runner.run(compact(self.database, self.organization_id, purge_after=purge_after))

    def match(self, match: Mapping[str, Any]) -> Group:
        return _match(match)

    def resolved(self, match: Mapping[str, Any]) -> SegmentQuery:
        return query_of(self.do(lambda tx: resolve(tx, self.organization_id, _match(match))))

    def query(self, match: Any, *, today: date | None = None) -> SegmentQuery:
        group = match if isinstance(match, Group) else _match(match)

        async def act(tx: Tx) -> SegmentQuery:
            return SegmentQuery(
                match=group,
                attributes=_plain(await find_types(tx, self.organization_id, Catalog.ATTRIBUTES, attributes_of(group))),
                properties=_plain(await find_types(tx, self.organization_id, Catalog.PRODUCTS, properties_of(group))),
                stores={name: self.stores[name] for name in stores_of(group) if name in self.stores},
                zone=self.zone,
                today=today or tx.now.astimezone(ZoneInfo(self.zone)).date(),
            )

        return self.do(act)

    def ask(self, match: Any, **given: Any) -> AnalysisResponse:
        query = match if isinstance(match, SegmentQuery) else self.query(match)
        given = {"want": "figures", "deadline_s": 60, **given}
        request = AnalysisRequest(organization_id=self.organization_id, query=query, **given)
        return self.runner.run(self.engine.respond(request))

    def figures(self, match: Any) -> SegmentCounts:
        answer = self.ask(match)
        assert answer.figures is not None, answer
        return answer.figures

    def count(self, *conditions: Mapping[str, Any]) -> int:
        return self.figures({"type": "all", "of": list(conditions)}).total

    def members(self, *conditions: Mapping[str, Any]) -> set[str]:
        answer = self.ask({"type": "all", "of": list(conditions)}, want="members", limit=1000)
        assert answer.members is not None, answer
        rows = self.sql(
            "SELECT external_id FROM profiles WHERE organization_id = %s AND id = ANY (%s::uuid[])",
            list(answer.members.profile_ids),
        )
        return {row[0] for row in rows}


def _match(match: Mapping[str, Any]) -> Group:
    return read_definition(json.dumps({"name": "x", "match": match}).encode()).match


def _plain(types: Mapping[str, Any]) -> dict[str, Any]:
    return {key: (declared, tuple(allowed)) for key, (declared, allowed) in types.items()}
