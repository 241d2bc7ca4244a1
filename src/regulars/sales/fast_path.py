"""Record a batch of sales in one statement that commits by itself: the hot path.

The statement (`statements.py`) inserts exactly the rows that the responses contain, or nothing:

- an unknown customer gets a candidate id, and the same statement inserts the profile without `ON CONFLICT`: if another
  process creates that customer meanwhile, the whole statement fails;
- the statement stores the response to a request with an idempotency key, so this response is encoded before, in two
  parts: the statement finds the customer, whose id is between them. Any other response is encoded afterwards;
- an idempotency key is inserted without `ON CONFLICT` too, only for an inserted sale: a used key fails the statement;
- a sale whose external_id is stored already is skipped, with its profile, its response and its event in the outbox;
- of a batch request, which has one response, all sales are inserted or none. A few batch requests share a statement: a
  request with a sale that the statement cannot handle is skipped; a sale that is stored already fails the statement;
- small batches of several organizations share a statement: if one fails, all fail;
- nothing is inserted if the prepared time differs from the database's time by more than a second.

Sales that were not inserted take the fallback path (`record.py`), whose statements see the other transaction's rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from operator import attrgetter
from typing import Final
from uuid import UUID

import psycopg

from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.clock import is_in_future, monotonic, truncate_to_milliseconds
from regulars.kit.connection import Connection
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE, SALES_EVENT, ByExternalId, new_uuids
from regulars.sales import statements
from regulars.sales.encode import UNKNOWN_PROFILE, ReferenceOut, SplitResponse, encode_new, split_at_profile
from regulars.sales.known_references import ORGANIZATIONS_CACHED_MAX, KnownReferences, find_profiles
from regulars.sales.model import EncodeBody, JoinBodies, KeyedSale, Sale, SalesRequest
from regulars.sales.statements import Candidate, InsertResult, KeyedResponse, NewRows, NewSale, Part, Source, Store
from regulars.work.facts import AUTOMATION_WINDOW, AutomationState
from regulars.work.outbox import OutboxQueue


class FastRecorder:
    """Records sales that are at most `tolerance` in the future. There is one object per process, because it caches
    stores and property keys."""

    def __init__(self, database: Database, *, tolerance: timedelta) -> None:
        self._database = database
        self._tolerance = tolerance
        self.known: Final = KnownReferences()
        # Ids of organizations whose last batch had a customer who did not exist yet.
        self._with_new_customers = BoundedCache[bytes, None](ORGANIZATIONS_CACHED_MAX)

    async def record(self, organization_id: UUID, writes: Sequence[KeyedSale]) -> list[EncodeBody | None]:
        """Record single sales; return a function that encodes the response for each inserted sale, else None."""
        [responses] = await self.record_shared([(organization_id, writes)])
        return responses

    async def record_shared(self, batches: Sequence[tuple[UUID, Sequence[KeyedSale]]]) -> list[list[EncodeBody | None]]:
        """Like `record`, for several organizations in one statement: if it fails, nothing is written for any of them.

        Organizations are sorted by id, so that two processes cannot deadlock.
        """
        responses: list[list[EncodeBody | None]] = [[None] * len(writes) for _, writes in batches]
        indexes = sorted(range(len(batches)), key=lambda index: batches[index][0])
        writes = [write for index in indexes for write in batches[index][1]]
        async with self._database.recording() as connection:
            # Checked here, because the first connection finds out whether the database is a cluster.
            if len(batches) > 1 and self._database.is_cluster:
                return responses
            sales = [(batches[index][0], [write.command for write in batches[index][1]]) for index in indexes]
            batch = await self._prepare(connection, sales)
            if not batch.chosen:
                return responses
            new = batch.as_rows(batch.keyed_responses(writes), status=201)
            inserted = await self._insert(connection, new, is_shared=len(batches) > 1)
        in_order = iter(batch.respond(new.responses, inserted))
        for index in indexes:
            responses[index] = [next(in_order) for _ in batches[index][1]]
            if any(responses[index]):
                self._notify(batches[index][0])
        return responses

    async def _insert(self, connection: Connection, new: NewRows, *, is_shared: bool) -> InsertResult:
        """Insert the sales of known customers by a form of the statement that creates no profiles, which takes half of
        the database's time, then those of new customers by the complete form.

        After a batch with a new customer only the complete form is used, because more new customers are likely.
        """
        organizations = {sale.organization for sale in new.sales}
        creates_profiles = not self._with_new_customers.entries.keys().isdisjoint(organizations)
        source = statements.SALES_OF_SEVERAL if is_shared else statements.SALES
        first = statements.NEW_PROFILES if creates_profiles else (statements.KNOWN_CUSTOMERS,)
        inserted = await self._run(connection, source, first, new)
        if not creates_profiles and new.candidates and len(inserted.profile_by_sale) < len(new.sales):
            try:
                second = await self._run(
                    connection, source, statements.NEW_PROFILES, new.without(inserted.profile_by_sale)
                )
                inserted = InsertResult(inserted.profile_by_sale | second.profile_by_sale, second.now)
            except psycopg.Error:
                # The sales of the first statement are committed and get their responses in any case. The remaining
                # sales take the fallback path, which finds the cause.
                if not inserted.profile_by_sale:
                    raise
        profiles = set(inserted.profile_by_sale.values())
        created = {candidate.organization for candidate in new.candidates if candidate.id in profiles}
        for organization in created:
            self._with_new_customers.add(organization, None)
        for organization in organizations - created if creates_profiles else ():
            self._with_new_customers.drop(organization)
        return inserted

    async def _run(
        self, connection: Connection, source: Source, of_customers: tuple[Part, ...], new: NewRows
    ) -> InsertResult:
        if len(new.sales) == 1 and source is statements.SALES:
            source = statements.ONE_SALE
        # With one organization a used key may fail the batch, which is cheaper than a look-up for each sale.
        unless_used = (statements.UNUSED_KEYS,) if source is statements.SALES_OF_SEVERAL else ()
        keys = (*unless_used, statements.SKIP_STORED, statements.STORE_RESPONSES)
        parts = (*of_customers, *(keys if new.responses else (statements.SKIP_STORED,)))
        sent_at = monotonic()
        inserted = await statements.insert(connection, source, parts, new)
        self._database.clock.set(inserted.now, queried_at=sent_at)
        return inserted

    async def record_requests(
        self, organization_id: UUID, requests: Sequence[SalesRequest], *, status: int
    ) -> list[EncodeBody | None]:
        """Like `record`, for batch requests: return a function for each request with inserted sales, else None."""
        async with self._database.recording() as connection:
            # A response that is stored with its sales has the ids of all customers in it, so these are looked up first.
            looks_up_customers = any(request.key is not None for request in requests)
            sales = [sale for request in requests for sale in request.sales]
            batch = await self._prepare(connection, [(organization_id, sales)], looks_up_customers=looks_up_customers)
            complete = batch.drop_incomplete([len(request.sales) for request in requests])
            if not batch.chosen:
                return [None] * len(requests)
            keyed: dict[int, KeyedResponse] = {}
            for index, group in complete.items():
                if (key := requests[index].key) is not None:
                    expected = _InsertedSales(batch, {sale.id: sale.profile for sale in group})
                    request = requests[index]
                    body = SplitResponse(expected.respond(group, request.join), None)
                    keyed[index] = KeyedResponse(group[0], key, request.fingerprint, body, request.extra_headers)
            new = batch.as_rows(list(keyed.values()), status=status)
            parts = (
                *(statements.NEW_PROFILES if new.candidates else ()),
                *((statements.STORE_RESPONSES,) if keyed else ()),
            )
            queried_at = monotonic()
            inserted = await statements.insert(connection, statements.SALES, parts, new)
        self._database.clock.set(inserted.now, queried_at=queried_at)
        responses: list[EncodeBody | None] = [None] * len(requests)
        if inserted.profile_by_sale:
            self._notify(organization_id)
            stored = _InsertedSales(batch, inserted.profile_by_sale)
            for index, group in complete.items():
                encode = partial(stored.respond, group, requests[index].join)
                responses[index] = partial(keyed[index].body.join, None) if index in keyed else encode
        return responses

    async def _prepare(
        self,
        connection: Connection,
        batches: Sequence[tuple[UUID, Sequence[Sale]]],
        *,
        looks_up_customers: bool = False,
    ) -> "_SaleBatch":
        """Choose the sales that the statement can handle, and assign to each its id, store and profile."""
        # Caches are loaded before the time is read: loading many new stores takes long, and the time must be current.
        stores = [await self._find_stores(connection, organization_id, sales) for organization_id, sales in batches]
        now = await self._read_now(connection)
        # Ids are made with the database's clock, like `created_at`, because lists of changes are in the order of ids.
        # Each sale may need one for its customer too.
        count = sum([len(sales) for _, sales in batches])
        ids = new_uuids(2 * count, at=now)
        batch = _SaleBatch(now, ids[:count], ids[count:])
        for (organization_id, sales), stores_of_sales in zip(batches, stores, strict=True):
            references = [sale.profile for sale in sales if isinstance(sale.profile, ByExternalId)]
            external_ids = sorted({reference.external_id for reference in references})
            profiles: dict[str, bytes | None] = {}
            if looks_up_customers and external_ids:
                profiles = await find_profiles(connection, organization_id, external_ids)
            organization = organization_id.bytes
            customers = batch.assign_profiles(organization, external_ids, profiles)
            with_stores = list(zip(sales, stores_of_sales, strict=True))
            batch.choose(organization, with_stores, customers, tolerance=self._tolerance, are_found=looks_up_customers)
        return batch

    def _notify(self, organization_id: UUID) -> None:
        """Wake the worker, which handles the events in the outbox."""
        self._database.notify_committed([(OutboxQueue.name, organization_id)])

    async def _find_stores(
        self, connection: Connection, organization_id: UUID, sales: Sequence[Sale]
    ) -> "list[Store | None]":
        """Return the store of each sale; None if there is no such store, or if a property key of the sale is not
        published: only the fallback path publishes new keys."""
        codes = {sale.store.external_id for sale in sales if isinstance(sale.store, ByExternalId)}
        keys = {key for sale in sales for key in sale.property_keys}
        known = self.known.by_organization.entries.get(organization_id)
        if known is None or codes - known.stores.entries.keys() or keys - known.property_keys.entries.keys():
            known = await self.known.load(connection, organization_id, codes=codes, property_keys=keys)
        stores, published = known.stores.entries, known.property_keys.entries.keys()
        return [
            stores.get(sale.store.external_id)
            if isinstance(sale.store, ByExternalId) and sale.property_keys <= published
            else None
            for sale in sales
        ]

    async def _read_now(self, connection: Connection) -> datetime:
        """Return the database's time; query it only if the last reading is not fresh."""
        clock = self._database.clock
        if not clock.is_fresh():
            queried_at = monotonic()
            clock.set(await statements.read_clock(connection), queried_at=queried_at)
        return truncate_to_milliseconds(clock.estimate_now())


_BY_EXTERNAL_ID = attrgetter("ticket.external_id")


class _SaleBatch:
    """Sales that one statement will insert, grouped by organization."""

    def __init__(self, now: datetime, ids: Sequence[bytes], profile_ids: Iterable[bytes]) -> None:
        """`ids` has one id for each sale that will be passed to `choose`, and `profile_ids` one for its customer."""
        self.now = now
        self._eligible_since = now - AUTOMATION_WINDOW
        self._ids = ids
        self._profile_ids = iter(profile_ids)
        self._count = 0
        self.chosen: list[NewSale] = []
        self.candidates: list[Candidate] = []

    def assign_profiles(
        self, organization: bytes, external_ids: Sequence[str], found: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """Return the profile of each customer: the existing one, or a candidate that the statement inserts if new."""
        unknown = [external_id for external_id in external_ids if found.get(external_id) is None]
        new = [Candidate(organization, next(self._profile_ids), external_id) for external_id in unknown]
        self.candidates += new
        existing = {external_id: identifier for external_id, identifier in found.items() if identifier is not None}
        return existing | {candidate.external_id: candidate.id for candidate in new}

    def choose(
        self,
        organization: bytes,
        sales: Sequence[tuple[Sale, Store | None]],
        customers: Mapping[str, bytes],
        *,
        tolerance: timedelta,
        are_found: bool,
    ) -> None:
        """Add the sales that the statement can handle, of those with a store. `customers` has the profile of each
        external id; unless they `are_found`, it is a candidate, and the statement looks the customer up."""
        chosen: list[NewSale] = []
        seen: set[str] = set()
        for position, (sale, store) in enumerate(sales, self._count):
            # A second ticket with the same id takes the fallback path, so that it never overtakes the first one.
            if sale.external_id in seen:
                continue
            seen.add(sale.external_id)
            if store is None or is_in_future(sale.occurred_at, now=self.now, tolerance=tolerance):
                continue
            customer = None
            if sale.profile is not None:
                if not isinstance(sale.profile, ByExternalId):
                    continue
                customer = sale.profile.external_id
            profile = None if customer is None else customers[customer]
            to_look_up = None if are_found else customer
            chosen.append(NewSale(position, organization, self._ids[position], sale, store, to_look_up, profile))
        # Sorted by external_id, so that two processes with the same tickets cannot deadlock.
        chosen.sort(key=_BY_EXTERNAL_ID)
        self.chosen += chosen
        self._count += len(sales)

    def as_rows(self, responses: Sequence[KeyedResponse], *, status: int) -> NewRows:
        return NewRows(self.chosen, self.candidates, responses, self.now, status)

    def keyed_responses(self, writes: Sequence[KeyedSale]) -> list[KeyedResponse]:
        """Encode the responses to store for idempotency keys."""
        return [
            KeyedResponse(sale, key, write.fingerprint, self.encode_split(sale), write.extra_headers)
            for sale in self.chosen
            if (key := (write := writes[sale.position]).key) is not None
        ]

    def respond(self, keyed: Sequence[KeyedResponse], inserted: InsertResult) -> list[EncodeBody | None]:
        """Return a function that encodes the response for each inserted sale, at its position, and None elsewhere."""
        responses: list[EncodeBody | None] = [None] * self._count
        stored = _InsertedSales(self, inserted.profile_by_sale)
        split = {response.sale.id: response.body for response in keyed}
        for sale in self.chosen:
            if sale.id in inserted.profile_by_sale:
                body = split.get(sale.id)
                responses[sale.position] = (
                    partial(stored.encode, sale) if body is None else partial(stored.join, sale, body)
                )
        return responses

    def drop_incomplete(self, sizes: Iterable[int]) -> dict[int, list[NewSale]]:
        """Drop the batch requests of which not all sales were chosen. `sizes` has the number of sales of each request.

        Return the remaining requests by their index, each with its sales in order.
        """
        by_position = {sale.position: sale for sale in self.chosen}
        complete: dict[int, list[NewSale]] = {}
        start = 0
        for index, size in enumerate(sizes):
            group = [by_position[position] for position in range(start, start + size) if position in by_position]
            if group and len(group) == size:
                complete[index] = group
            else:
                self.chosen = [sale for sale in self.chosen if not start <= sale.position < start + size]
            start += size
        return complete

    @cached_property
    def _canonical_ids(self) -> dict[bytes, str]:
        """The canonical ids of the sales, encoded together because that is faster."""
        ids = [sale.id for sale in self.chosen]
        return dict(zip(ids, SALES_EVENT.encode_all(ids), strict=True))

    def encode(self, sale: NewSale, profile: str | None) -> bytes:
        """Encode the response to a sale of the customer with this canonical id."""
        ticket, reference = sale.ticket, None
        state: AutomationState = "not_applicable"
        if profile is not None and isinstance(ticket.profile, ByExternalId):
            reference = ReferenceOut(profile, ticket.profile.external_id)
            # The same as `eligibility_of`, whose time is the same for all sales of the batch.
            state = "eligible" if ticket.occurred_at >= self._eligible_since else "stale_fact"
        return encode_new(
            ticket,
            self._canonical_ids[sale.id],
            store=sale.store.reference,
            profile=reference,
            created_at=self.now,
            state=state,
        )

    def encode_split(self, sale: NewSale) -> SplitResponse:
        """Encode the response to a sale whose profile is not known yet."""
        if sale.profile is None:
            return SplitResponse(self.encode(sale, None), None)
        return split_at_profile(self.encode(sale, UNKNOWN_PROFILE))


class _InsertedSales:
    """Encodes the responses to the inserted sales of a batch, given the profile of each."""

    def __init__(self, batch: _SaleBatch, profiles: Mapping[bytes, bytes | None]) -> None:
        self._batch = batch
        self._profiles = profiles

    @cached_property
    def _canonical_ids(self) -> dict[bytes | None, str]:
        """The canonical ids of the profiles, encoded together when the first response is made."""
        ids = [identifier for identifier in set(self._profiles.values()) if identifier is not None]
        return dict(zip(ids, PROFILE.encode_all(ids), strict=True))

    def encode(self, sale: NewSale) -> bytes:
        return self._batch.encode(sale, self._canonical_ids.get(self._profiles[sale.id]))

    def respond(self, group: Iterable[NewSale], join: JoinBodies) -> bytes:
        return join([self.encode(sale) for sale in group])

    def join(self, sale: NewSale, response: SplitResponse) -> bytes:
        return response.join(self._canonical_ids.get(self._profiles[sale.id]))
