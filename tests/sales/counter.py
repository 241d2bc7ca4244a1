"""The write engine with the sales route and nothing else, and everything it left in comparable form."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import msgspec
from tests.sales.desk import TOLERANCE, Desk
from tests.support import samples
from tests.support.database_fixtures import request

from regulars.http.request import ApiResponse, EncodeBody
from regulars.http.route import RunFast, RunFastShared, WriteRoute
from regulars.http.writes import Writes
from regulars.kit.db import Database
from regulars.kit.errors import ApiError
from regulars.kit.ids import PROFILE, STORE
from regulars.profiles.errors import person_erased
from regulars.sales import api
from regulars.sales.fast_path import FastRecorder

_CANONICAL = re.compile(r"(?:prof|store|evt)_[0-9a-z]{26}")
TARGET = b"/v1/sales-events"


@dataclass(frozen=True)
class SaleRequest:
    """A request: a ticket, whose references may say `@name` for the canonical id of that name."""

    body: dict[str, Any]
    key: str | None = None


@dataclass
class Counter:
    desk: Desk
    writes: Writes
    recorder: FastRecorder | None
    routes: dict[str, WriteRoute]
    sent_quickly: list[int] = field(default_factory=list)

    async def send(self, requests: Sequence[SaleRequest]) -> list[dict[str, Any]]:
        """Send all at once, so that they meet in one batch; give the answers without what differs by nature."""
        names = await self.canonical_ids()
        answers = await asyncio.gather(*(self._submit(one, names) for one in requests))
        back = {identifier: f"@{name}" for name, identifier in (await self.canonical_ids()).items()}
        return [_comparable(answer, back) for answer in answers]

    async def _submit(self, sale: SaleRequest, names: dict[str, str]) -> ApiResponse | ApiError:
        body = {
            name: names[value[1:]] if isinstance(value, str) and value.startswith("@") else value
            for name, value in sale.body.items()
        }
        asked = request(self.desk.organization_id, body=samples.json_bytes(body))
        try:
            return await self.writes.submit(
                self.routes[api.RECORD_SALE], asked, target=TARGET, key=sale.key, charge=lambda _: None
            )
        except ApiError as error:
            return error

    async def canonical_ids(self) -> dict[str, str]:
        stores = await self.desk.rows("SELECT external_id, id FROM stores WHERE organization_id = %s")
        profiles = await self.desk.rows("SELECT external_id, id FROM profiles WHERE organization_id = %s")
        return {
            **{name: STORE.encode(identifier) for name, identifier in stores},
            **{name: PROFILE.encode(identifier) for name, identifier in profiles},
        }

    async def left(self) -> dict[str, Any]:
        """Every table the room writes, without ids and times of its own."""
        back = {identifier: f"@{name}" for name, identifier in (await self.canonical_ids()).items()}
        rows = self.desk.rows
        published = [sale for fact in await self.desk.published_sales() for sale in fact]
        known = dict(await rows("SELECT id::text, external_id FROM sales_events WHERE organization_id = %s"))
        profile_ids = {str(row[0]) for row in await rows("SELECT id FROM profiles WHERE organization_id = %s")}
        keys = await rows(
            "SELECT key, status, convert_from(body, 'UTF8') FROM idempotency_keys WHERE organization_id = %s ORDER BY 1"
        )
        collisions = await rows(
            "SELECT s.external_id, c.attempt::text, c.times_seen FROM ticket_collisions c"
            " JOIN sales_events s ON s.organization_id = c.organization_id AND s.id = c.sales_event_id"
            " WHERE c.organization_id = %s"
        )
        return {
            "sales": await rows(
                "SELECT e.external_id, e.type, e.occurred_at, s.external_id, p.external_id, e.profile_id IS NULL, e.currency,"
                " e.total_amount_cents, e.total_discount_cents, e.total_tax_cents, e.source, e.payments::text,"
                " e.loyalty::text, e.metadata::text, e.line_items::text"
                " FROM sales_events e JOIN stores s ON s.organization_id = e.organization_id AND s.id = e.store_id"
                " LEFT JOIN profiles p ON p.organization_id = e.organization_id AND p.id = e.profile_id"
                " WHERE e.organization_id = %s ORDER BY 1"
            ),
            "profiles": await rows(
                "SELECT external_id, phone_number, phone_reachable, first_name, last_name, attributes,"
                " created_at = updated_at FROM profiles WHERE organization_id = %s ORDER BY 1"
            ),
            "keys": [(key, status, comparable_body(msgspec.json.decode(body), back)) for key, status, body in keys],
            "published": sorted(known[sale] for sale in published),
            "profiles published": sorted(
                (one["change"], one["id"] in profile_ids, _without_times(one["shown"], back))
                for one in await self.desk.published_profiles()
            ),
            "collisions": sorted((name, _spell(attempt, back), times) for name, attempt, times in collisions),
            "totals": await rows(
                "SELECT s.external_id, c.times_seen FROM ticket_collision_totals c"
                " JOIN sales_events s ON s.organization_id = c.organization_id AND s.id = c.sales_event_id"
                " WHERE c.organization_id = %s ORDER BY 1"
            ),
        }

    async def close(self) -> None:
        await self.writes.in_flight.coalescer.drain()


def open_counter(database: Database, organization_id: UUID, *, quick: bool) -> Counter:
    recorder = FastRecorder(database, tolerance=TOLERANCE) if quick else None
    sizes: list[int] = []

    def counting(way: RunFast) -> RunFast:
        async def counted(organization: UUID, writes: Sequence[Any]) -> Sequence[EncodeBody | None]:
            answers = await way(organization, writes)
            sizes.append(sum(answer is not None for answer in answers))
            return answers

        return counted

    def counting_together(way: RunFastShared | None) -> RunFastShared | None:
        if way is None:
            return None

        async def counted(batches: Sequence[tuple[UUID, Sequence[Any]]]) -> Sequence[Sequence[EncodeBody | None]]:
            answers = await way(batches)
            sizes.append(sum(answer is not None for some in answers for answer in some))
            return answers

        return counted

    routes = {
        route.operation_id: route
        if route.run_fast is None
        else replace(route, run_fast=counting(route.run_fast), run_fast_shared=counting_together(route.run_fast_shared))
        for route in api.routes(tolerance=TOLERANCE, recorder=recorder)
        if isinstance(route, WriteRoute)
    }
    writes = Writes(database, list(routes.values()), erased_error=person_erased())
    return Counter(Desk(database, organization_id), writes, recorder, routes, sizes)


def _comparable(answer: ApiResponse | ApiError, back: dict[str, str]) -> dict[str, Any]:
    if isinstance(answer, ApiError):
        return {"status": answer.status, "raised": answer.code, "detail": answer.detail}
    body = comparable_body(msgspec.json.decode(answer.body), back)
    return {"status": answer.status, "headers": sorted(answer.headers), "body": body}


def _without_times(shown: dict[str, Any], back: dict[str, str]) -> str:
    assert shown["created_at"] == shown["updated_at"]
    return str({**shown, "id": back[shown["id"]], "created_at": "", "updated_at": ""})


def comparable_body(body: Any, back: dict[str, str]) -> Any:
    """A body without what differs by nature, and with names for canonical ids."""
    if isinstance(body, dict):
        return {
            name: comparable_body(value, back)
            for name, value in body.items()
            if name not in {"id", "created_at", "request_id"}
        }
    if isinstance(body, list):
        return [comparable_body(item, back) for item in body]
    return _spell(body, back) if isinstance(body, str) else body


def _spell(text: str, back: dict[str, str]) -> str:
    return _CANONICAL.sub(lambda match: back.get(match[0], "@nobody"), text)
