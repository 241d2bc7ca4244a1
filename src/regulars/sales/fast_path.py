"""The hot path: a whole batch of sales in one statement that commits by itself.

A statement (`statements.py`) inserts exactly what the responses say, or nothing:

- a customer who is not known gets a candidate id, and the same statement inserts the profile without `ON CONFLICT`: if
  another process creates that customer meanwhile, the whole statement fails. The sales of known customers go first, by
  a form of the statement without that part, which is cheaper;
- the statement stores the response to a request with an idempotency key. So that response is encoded before, split in
  two: the statement finds the customer whose id goes in between. Any other response is encoded afterwards;
- a key is inserted without `ON CONFLICT` too, and only for an inserted sale: a key in use fails the whole statement;
- a sale whose external_id is stored already is left out, with its profile, its response and its fact;
- of a batch request, which has one response for all its sales, all are inserted or none. A few of them share a
  statement: a request with a sale that the statement cannot decide is left out, one with a stored sale fails all;
- small batches of several organizations share a statement: if one fails, all fail;
- nothing is inserted when the prepared time is more than a second from the database's.

What was not inserted takes the fallback path (`record.py`), whose new statements see the rows that were first.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

import msgspec
import psycopg

from regulars.kit.clock import is_in_future, monotonic, truncate_to_milliseconds
from regulars.kit.connection import Connection
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE, ByExternalId, new_uuids
from regulars.sales import statements
from regulars.sales.encode import UNKNOWN_PROFILE, ReferenceOut, SplitResponse, encode_new, split_at_profile
from regulars.sales.model import Encode, Join, KeyedSale, Sale, SalesRequest
from regulars.sales.statements import Candidate, Form, Inserted, KeyedResponse, NewRows, NewSale
from regulars.work.facts import freshness
from regulars.work.outbox import OutboxQueue

STORES_CACHED_MAX = 100_000
ORGANIZATIONS_CACHED_MAX = 10_000
PROPERTY_KEYS_CACHED_MAX = 10_000


class FastRecorder:
    """One per process."""

    def __init__(self, database: Database, *, tolerance: timedelta) -> None:
        self._database = database
        self._tolerance = tolerance
        self._caches: dict[UUID, _Cache] = {}
        # Organizations whose last batch had a customer who did not exist yet.
        self._with_new_customers: set[bytes] = set()

    async def record(self, organization_id: UUID, writes: Sequence[KeyedSale]) -> list[Encode | None]:
        """The response to each inserted sale, and None for every other."""
        [responses] = await self.record_together([(organization_id, writes)])
        return responses

    async def record_together(self, batches: Sequence[tuple[UUID, Sequence[KeyedSale]]]) -> list[list[Encode | None]]:
        """The same for several organizations, each once, in one statement: if it fails, nothing of any is written.

        They are taken in the order of their ids, so that two processes cannot deadlock.
        """
        responses: list[list[Encode | None]] = [[None] * len(writes) for _, writes in batches]
        numbers = sorted(range(len(batches)), key=lambda number: batches[number][0])
        writes = [write for number in numbers for write in batches[number][1]]
        async with self._database.recording() as connection:
            # Not known before the first connection.
            if len(batches) > 1 and self._database.is_cluster:
                return responses
            sales = [(batches[number][0], [write.command for write in batches[number][1]]) for number in numbers]
            batch = await self._prepare(connection, sales)
            if not batch.chosen:
                return responses
            new = batch.as_rows(batch.keyed_responses(writes))
            inserted = await self._insert(connection, new, is_shared=len(batches) > 1)
        made = iter(batch.respond(new.responses, inserted))
        for number in numbers:
            responses[number] = [next(made) for _ in batches[number][1]]
            if any(responses[number]):
                self._notify(batches[number][0])
        return responses

    async def _insert(self, connection: Connection, new: NewRows, *, is_shared: bool) -> Inserted:
        """Insert the sales of known customers first, by a form without the parts that create profiles.

        That saves a lone sale half of the database's time. What is left, sales of new customers and duplicates, goes to
        the whole form. An organization whose last batch had a new customer starts with that one: more will come.
        """
        organizations = {sale.organization for sale in new.sales}
        form = Form(is_shared=is_shared, creates_profiles=not organizations.isdisjoint(self._with_new_customers))
        inserted = await self._run(connection, form, new)
        if not form.creates_profiles and new.candidates and len(inserted.profiles) < len(new.sales):
            whole_form = form._replace(creates_profiles=True)
            try:
                rest = await self._run(connection, whole_form, new.without(inserted.profiles))
                inserted = Inserted(inserted.profiles | rest.profiles, rest.now)
            except psycopg.Error:
                # What the first statement inserted is committed, and gets its response in any case; the rest
                # takes the fallback path, which finds out.
                if not inserted.profiles:
                    raise
        profiles = set(inserted.profiles.values())
        created = {candidate.organization for candidate in new.candidates if candidate.id in profiles}
        self._with_new_customers = (self._with_new_customers - organizations) | created
        return inserted

    async def _run(self, connection: Connection, form: Form, new: NewRows) -> Inserted:
        form = form._replace(is_single=len(new.sales) == 1 and not form.is_shared, has_keys=bool(new.responses))
        sent_at = monotonic()
        inserted = await statements.insert(connection, form, new, status=201)
        self._database.clock.set(inserted.now, queried_at=sent_at)
        return inserted

    async def record_all(
        self, organization_id: UUID, requests: Sequence[SalesRequest], *, status: int
    ) -> list[Encode | None]:
        """The response to each request whose sales were inserted, and None for every other."""
        async with self._database.recording() as connection:
            # A stored response has the ids of many customers in it, so they are looked up before.
            finds_customers = any(request.key is not None for request in requests)
            sales = [sale for request in requests for sale in request.sales]
            batch = await self._prepare(connection, [(organization_id, sales)], finds_customers=finds_customers)
            whole = batch.drop_incomplete([len(request.sales) for request in requests])
            if not batch.chosen:
                return [None] * len(requests)
            keyed: dict[int, KeyedResponse] = {}
            for number, ones in whole.items():
                if (key := requests[number].key) is not None:
                    known_before = _InsertedSales(batch, {one.new.id: one.new.profile for one in ones})
                    request = requests[number]
                    body = SplitResponse(known_before.respond(ones, request.join), None)
                    keyed[number] = KeyedResponse(ones[0].new.id, key, request.fingerprint, body, request.notes)
            new = batch.as_rows(list(keyed.values()))
            form = Form(has_keys=bool(keyed), creates_profiles=bool(new.candidates), skips_duplicates=False)
            queried_at = monotonic()
            inserted = await statements.insert(connection, form, new, status=status)
        self._database.clock.set(inserted.now, queried_at=queried_at)
        responses: list[Encode | None] = [None] * len(requests)
        if inserted.profiles:
            self._notify(organization_id)
            stored = _InsertedSales(batch, inserted.profiles)
            for number, ones in whole.items():
                responses[number] = (
                    partial(keyed[number].body.join, None)
                    if number in keyed
                    else partial(stored.respond, ones, requests[number].join)
                )
        return responses

    async def _prepare(
        self,
        connection: Connection,
        batches: Sequence[tuple[UUID, Sequence[Sale]]],
        *,
        finds_customers: bool = False,
    ) -> "_Batch":
        """Choose the sales that the statement can decide, and give each what it will be stored with."""
        # First, because it may take a while with many new stores, and the time must be fresh.
        known = [await self._load_cache(connection, organization_id, sales) for organization_id, sales in batches]
        now = await self._now(connection)
        # By the database's clock, like `created_at`: the feed of sales follows the ids.
        batch = _Batch(now, new_uuids(sum([len(sales) for _, sales in batches]), at=now))
        for (organization_id, sales), cache in zip(batches, known, strict=True):
            names = sorted({sale.profile.external_id for sale in sales if isinstance(sale.profile, ByExternalId)})
            profiles: dict[str, bytes | None] = {}
            if finds_customers and names:
                found = await statements.find_ids(connection, statements.FIND_PROFILES, organization_id, names)
                profiles = dict(zip(names, found, strict=True))
            owner = organization_id.bytes
            customers = batch.assign_profiles(owner, names, profiles)
            batch.choose(owner, sales, cache, customers, tolerance=self._tolerance, are_found=finds_customers)
        return batch

    def _notify(self, organization_id: UUID) -> None:
        self._database.notify_committed([(OutboxQueue.name, organization_id)])

    async def _load_cache(self, connection: Connection, organization_id: UUID, sales: Sequence[Sale]) -> "_Cache":
        """The cache of the organization, with the stores and the property keys of these sales if they exist."""
        known = self._caches.get(organization_id)
        if known is None:
            if len(self._caches) >= ORGANIZATIONS_CACHED_MAX:
                self._caches.clear()
                self._with_new_customers.clear()
            known = self._caches[organization_id] = _Cache({}, set())
            # All at once: otherwise the first sale of each store would cost a look-up.
            known.add_stores(await statements.find_first_stores(connection, organization_id))
        codes = {sale.store.external_id for sale in sales if isinstance(sale.store, ByExternalId)}
        if not codes <= known.stores.keys():
            missing = sorted(codes - known.stores.keys())
            found = await statements.find_ids(connection, statements.FIND_STORES, organization_id, missing)
            known.add_stores(zip(missing, found, strict=True))
        keys = set[str]().union(*[sale.property_keys for sale in sales])
        if missing_keys := keys - known.property_keys:
            known.add_property_keys(
                await statements.find_property_keys(connection, organization_id, sorted(missing_keys))
            )
        return known

    async def _now(self, connection: Connection) -> datetime:
        """The database's time, from the last reading when that is fresh."""
        clock = self._database.clock
        if not clock.is_fresh():
            queried_at = monotonic()
            clock.set(await statements.read_clock(connection), queried_at=queried_at)
        return truncate_to_milliseconds(clock.about_now())


class _Store(NamedTuple):
    id: bytes
    reference: ReferenceOut


class _Cache(NamedTuple):
    """The stores and property keys of an organization.

    It never expires: a store's code and id never change, and neither a store nor a property key is ever deleted.
    """

    stores: dict[str, _Store]
    property_keys: set[str]

    def store_of(self, sale: Sale) -> _Store | None:
        """The sale's store, if that and all its property keys are known; the fallback path publishes new keys."""
        if not isinstance(sale.store, ByExternalId) or not self.property_keys.issuperset(sale.property_keys):
            return None
        return self.stores.get(sale.store.external_id)

    def add_stores(self, found: Iterable[tuple[str, bytes | None]]) -> None:
        if len(self.stores) >= STORES_CACHED_MAX:
            self.stores.clear()
        for code, identifier in found:
            if identifier is not None:
                self.stores[code] = _Store(identifier, ReferenceOut(STORE.encode(UUID(bytes=identifier)), code))

    def add_property_keys(self, keys: set[str]) -> None:
        if len(self.property_keys) + len(keys) > PROPERTY_KEYS_CACHED_MAX:
            self.property_keys.clear()
        self.property_keys.update(keys)


class _ChosenSale(msgspec.Struct, frozen=True, gc=False):
    """A sale that the statement will insert, and its position among those that were passed in."""

    position: int
    new: NewSale
    store: ReferenceOut


_BY_EXTERNAL_ID = attrgetter("new.ticket.external_id")


class _Batch:
    """Sales that one statement is to insert, the organizations one after the other."""

    def __init__(self, now: datetime, ids: Sequence[bytes]) -> None:
        """`ids` has one id for each sale that will be passed in."""
        self.now = now
        self._ids = ids
        self._count = 0
        self.chosen: list[_ChosenSale] = []
        self.candidates: list[Candidate] = []

    def assign_profiles(
        self, organization: bytes, names: Sequence[str], known: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """The profile of each customer: the existing one, or a candidate."""
        unknown = [name for name in names if known.get(name) is None]
        new = [
            Candidate(organization, identifier, name)
            for identifier, name in zip(new_uuids(len(unknown)), unknown, strict=True)
        ]
        self.candidates += new
        existing = {name: identifier for name, identifier in known.items() if identifier is not None}
        return existing | {one.name: one.id for one in new}

    def choose(
        self,
        organization: bytes,
        sales: Sequence[Sale],
        known: "_Cache",
        customers: Mapping[str, bytes],
        *,
        tolerance: timedelta,
        are_found: bool,
    ) -> None:
        """Take in those of an organization's sales that the statement can decide."""
        chosen: list[_ChosenSale] = []
        seen: set[str] = set()
        for position, sale in enumerate(sales, self._count):
            # A repeated ticket takes the fallback path, even if the first does too: it must not overtake the first.
            if sale.external_id in seen:
                continue
            seen.add(sale.external_id)
            store = known.store_of(sale)
            if store is None or is_in_future(sale.occurred_at, now=self.now, tolerance=tolerance):
                continue
            customer = None
            if sale.profile is not None:
                if not isinstance(sale.profile, ByExternalId):
                    continue
                customer = sale.profile.external_id
            profile = None if customer is None else customers[customer]
            to_find = None if are_found else customer
            new = NewSale(organization, self._ids[position], sale, store.id, to_find, profile)
            chosen.append(_ChosenSale(position, new, store.reference))
        # In external_id order, so that two processes that share tickets cannot deadlock.
        chosen.sort(key=_BY_EXTERNAL_ID)
        self.chosen += chosen
        self._count += len(sales)

    def as_rows(self, responses: Sequence[KeyedResponse]) -> NewRows:
        return NewRows([one.new for one in self.chosen], self.candidates, responses, self.now)

    def keyed_responses(self, writes: Sequence[KeyedSale]) -> list[KeyedResponse]:
        """The responses to store for idempotency keys."""
        return [
            KeyedResponse(one.new.id, key, write.fingerprint, self.encode_split(one), write.notes)
            for one in self.chosen
            if (key := (write := writes[one.position]).key) is not None
        ]

    def respond(self, keyed: Sequence[KeyedResponse], inserted: Inserted) -> list[Encode | None]:
        """The response to each inserted sale, at its position."""
        responses: list[Encode | None] = [None] * self._count
        sales = _InsertedSales(self, inserted.profiles)
        split = {one.sale: one.body for one in keyed}
        for one in self.chosen:
            if one.new.id in inserted.profiles:
                body = split.get(one.new.id)
                responses[one.position] = partial(sales.encode, one) if body is None else partial(sales.join, one, body)
        return responses

    def drop_incomplete(self, sizes: Iterable[int]) -> dict[int, list[_ChosenSale]]:
        """Of sales that were passed in groups of these sizes, drop the groups of which not all were chosen.

        Gives each remaining group by its number, with its sales in order.
        """
        by_position = {one.position: one for one in self.chosen}
        whole: dict[int, list[_ChosenSale]] = {}
        start = 0
        for number, size in enumerate(sizes):
            group = [by_position[position] for position in range(start, start + size) if position in by_position]
            if group and len(group) == size:
                whole[number] = group
            else:
                self.chosen = [one for one in self.chosen if not start <= one.position < start + size]
            start += size
        return whole

    @cached_property
    def _names(self) -> dict[bytes, str]:
        """The canonical ids of the sales, which are spelled together."""
        ids = [one.new.id for one in self.chosen]
        return dict(zip(ids, SALES_EVENT.spell(ids), strict=True))

    def encode(self, one: _ChosenSale, profile: str | None) -> bytes:
        """The body of the response to a sale that is stored with the profile of this canonical id."""
        ticket, reference = one.new.ticket, None
        if profile is not None and isinstance(ticket.profile, ByExternalId):
            reference = ReferenceOut(profile, ticket.profile.external_id)
        return encode_new(
            ticket,
            self._names[one.new.id],
            store=one.store,
            profile=reference,
            created_at=self.now,
            state="not_applicable" if reference is None else freshness(ticket.occurred_at, now=self.now),
        )

    def encode_split(self, one: _ChosenSale) -> SplitResponse:
        """The same for a profile that is not known yet."""
        if one.new.profile is None:
            return SplitResponse(self.encode(one, None), None)
        return split_at_profile(self.encode(one, UNKNOWN_PROFILE))


class _InsertedSales:
    """The inserted sales of a batch with their profiles; it makes the responses."""

    def __init__(self, batch: _Batch, profiles: Mapping[bytes, bytes | None]) -> None:
        self._batch = batch
        self._profiles = profiles

    @cached_property
    def _names(self) -> dict[bytes | None, str]:
        """The canonical ids of the profiles, spelled together when the first response is made."""
        ids = [identifier for identifier in set(self._profiles.values()) if identifier is not None]
        return dict(zip(ids, PROFILE.spell(ids), strict=True))

    def encode(self, one: _ChosenSale) -> bytes:
        return self._batch.encode(one, self._names.get(self._profiles[one.new.id]))

    def respond(self, ones: Iterable[_ChosenSale], join: Join) -> bytes:
        return join([self.encode(one) for one in ones])

    def join(self, one: _ChosenSale, response: SplitResponse) -> bytes:
        return response.join(self._names.get(self._profiles[one.new.id]))
