"""The hot path: a whole batch of sales in one statement that commits by itself.

What the statements (`statements.py`) insert is exactly what is answered, or nothing:

- a customer who is not known gets a candidate id, and the same statement inserts the profile without `ON CONFLICT`: if
  another process creates that customer meanwhile, the whole statement fails. The sales of known customers go first, by
  a form of the statement without that part, which is cheaper;
- an answer that is kept for an idempotency key is stored by the statement, so it is encoded before, in two halves: the
  statement finds the customer whose id goes between them. Any other answer is encoded afterwards;
- a key is inserted without `ON CONFLICT` too, and only for a sale that went in: one that is taken fails it all;
- a sale whose external_id is taken is left out, with its profile, its record and its fact;
- of a batch request, which has one answer for all its sales, either all go in or none. A few of them share a statement:
  one with a sale that the statement cannot decide is left out whole, and one that repeats a stored sale fails it all;
- small batches of several organizations share a statement: if one fails, all do;
- nothing goes in when the prepared time is more than a second from the database's.

Whatever was not inserted takes the careful path (`record.py`), a new statement that sees the winner.
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
from regulars.sales.encode import UNKNOWN_PROFILE, ReferenceOut, Split, encode_new, split_at_profile
from regulars.sales.model import Encode, Join, KeyedSale, Sale, SalesRequest
from regulars.sales.statements import Candidate, Form, Inserted, Kept, New, NewSale
from regulars.work.facts import freshness
from regulars.work.outbox import OutboxQueue

STORES_CACHED_MAX = 100_000
ORGANIZATIONS_CACHED_MAX = 10_000
PROPERTY_KEYS_CACHED_MAX = 10_000


class QuickRecorder:
    """One per process."""

    def __init__(self, database: Database, *, tolerance: timedelta) -> None:
        self._database = database
        self._tolerance = tolerance
        self._known: dict[UUID, _Known] = {}
        # Organizations whose last batch had a customer who did not exist yet.
        self._with_new_customers: set[bytes] = set()

    async def record(self, organization_id: UUID, writes: Sequence[KeyedSale]) -> list[Encode | None]:
        """The answer to each sale that went in, and None for each that did not."""
        [answers] = await self.record_together([(organization_id, writes)])
        return answers

    async def record_together(self, batches: Sequence[tuple[UUID, Sequence[KeyedSale]]]) -> list[list[Encode | None]]:
        """The same for several organizations, each once, in one statement: if it fails, nothing of any is written.

        They are taken in the order of their ids, so that two processes do not wait for each other crosswise.
        """
        answers: list[list[Encode | None]] = [[None] * len(writes) for _, writes in batches]
        numbers = sorted(range(len(batches)), key=lambda number: batches[number][0])
        writes = [write for number in numbers for write in batches[number][1]]
        async with self._database.recording() as connection:
            # Known only now, if this is the first connection.
            if len(batches) > 1 and self._database.is_cluster:
                return answers
            asked = [(batches[number][0], [write.command for write in batches[number][1]]) for number in numbers]
            batch = await self._prepare(connection, asked)
            if not batch.chosen:
                return answers
            new = batch.as_new(batch.keep(writes))
            inserted = await self._insert(connection, new, is_shared=len(batches) > 1)
        made = iter(batch.answer(new.kept, inserted))
        for number in numbers:
            answers[number] = [next(made) for _ in batches[number][1]]
            if any(answers[number]):
                self._tell(batches[number][0])
        return answers

    async def _insert(self, connection: Connection, new: New, *, is_shared: bool) -> Inserted:
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
                # What the first statement inserted is committed, and answered whatever becomes of the second; the rest
                # takes the fallback path, which finds out.
                if not inserted.profiles:
                    raise
        profiles = set(inserted.profiles.values())
        created = {candidate.organization for candidate in new.candidates if candidate.id in profiles}
        self._with_new_customers = (self._with_new_customers - organizations) | created
        return inserted

    async def _run(self, connection: Connection, form: Form, new: New) -> Inserted:
        form = form._replace(is_single=len(new.sales) == 1 and not form.is_shared, has_keys=bool(new.kept))
        sent_at = monotonic()
        inserted = await statements.insert(connection, form, new, status=201)
        self._database.clock.set(inserted.now, asked_at=sent_at)
        return inserted

    async def record_all(
        self, organization_id: UUID, requests: Sequence[SalesRequest], *, status: int
    ) -> list[Encode | None]:
        """The answer to each request whose sales went in, and None for each of which none did."""
        async with self._database.recording() as connection:
            # An answer that is kept has the ids of many customers in it, so they are looked up before.
            finds_customers = any(request.key is not None for request in requests)
            sales = [sale for request in requests for sale in request.sales]
            batch = await self._prepare(connection, [(organization_id, sales)], finds_customers=finds_customers)
            whole = batch.keep_whole([len(request.sales) for request in requests])
            if not batch.chosen:
                return [None] * len(requests)
            kept: dict[int, Kept] = {}
            for number, ones in whole.items():
                if (key := requests[number].key) is not None:
                    known_before = _WentIn(batch, {one.new.id: one.new.profile for one in ones})
                    request = requests[number]
                    body = known_before.answer(ones, request.join)
                    kept[number] = Kept(ones[0].new.id, key, request.fingerprint, Split(body, None), request.notes)
            new = batch.as_new(list(kept.values()))
            form = Form(has_keys=bool(kept), creates_profiles=bool(new.candidates), skips_duplicates=False)
            asked_at = monotonic()
            inserted = await statements.insert(connection, form, new, status=status)
        self._database.clock.set(inserted.now, asked_at=asked_at)
        answers: list[Encode | None] = [None] * len(requests)
        if inserted.profiles:
            self._tell(organization_id)
            went_in = _WentIn(batch, inserted.profiles)
            for number, ones in whole.items():
                answers[number] = (
                    partial(kept[number].body.join, None)
                    if number in kept
                    else partial(went_in.answer, ones, requests[number].join)
                )
        return answers

    async def _prepare(
        self,
        connection: Connection,
        asked: Sequence[tuple[UUID, Sequence[Sale]]],
        *,
        finds_customers: bool = False,
    ) -> "_Batch":
        """Choose the sales that the statement can decide, and give each what it will be stored with."""
        # First, because it may take a while where much is new, and the time is to be fresh.
        known = [await self._learn(connection, organization_id, sales) for organization_id, sales in asked]
        now = await self._now(connection)
        # By the database's clock, like `created_at`: the feed of sales follows the ids.
        batch = _Batch(now, new_uuids(sum([len(sales) for _, sales in asked]), at=now))
        for (organization_id, sales), of_it in zip(asked, known, strict=True):
            names = sorted({sale.profile.external_id for sale in sales if isinstance(sale.profile, ByExternalId)})
            profiles: dict[str, bytes | None] = {}
            if finds_customers and names:
                found = await statements.find_ids(connection, statements.FIND_PROFILES, organization_id, names)
                profiles = dict(zip(names, found, strict=True))
            whose = organization_id.bytes
            customers = batch.meet(whose, names, profiles)
            batch.choose(whose, sales, of_it, customers, tolerance=self._tolerance, are_found=finds_customers)
        return batch

    def _tell(self, organization_id: UUID) -> None:
        self._database.notify_committed([(OutboxQueue.name, organization_id)])

    async def _learn(self, connection: Connection, organization_id: UUID, sales: Sequence[Sale]) -> "_Known":
        """What is known of the organization, with the stores and the property keys of these sales if they exist."""
        known = self._known.get(organization_id)
        if known is None:
            if len(self._known) >= ORGANIZATIONS_CACHED_MAX:
                self._known.clear()
                self._with_new_customers.clear()
            known = self._known[organization_id] = _Known({}, set())
            # All at once: a till's first sale would otherwise cost a look-up for each store.
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
            asked_at = monotonic()
            clock.set(await statements.read_clock(connection), asked_at=asked_at)
        return truncate_to_milliseconds(clock.about_now())


class _Store(NamedTuple):
    id: bytes
    shown: ReferenceOut


class _Known(NamedTuple):
    """What is known of an organization.

    A store's code and id never change and a store is never deleted, so what was found once stays true. Neither does a
    key of a product property leave the catalog once it is in.
    """

    stores: dict[str, _Store]
    property_keys: set[str]

    def store_of(self, sale: Sale) -> _Store | None:
        """The sale's store, if that and all its property keys are known; the careful path tells of new keys."""
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


class _Chosen(msgspec.Struct, frozen=True, gc=False):
    """A sale that the statement will insert, and its place among those that were asked for."""

    place: int
    new: NewSale
    store: ReferenceOut


_BY_EXTERNAL_ID = attrgetter("new.told.external_id")


class _Batch:
    """Sales that one statement is to insert, the organizations one after the other."""

    def __init__(self, now: datetime, ids: Sequence[bytes]) -> None:
        """There is an id for each sale that was asked for."""
        self.now = now
        self._ids = ids
        self._asked = 0
        self.chosen: list[_Chosen] = []
        self.candidates: list[Candidate] = []

    def meet(self, organization: bytes, names: Sequence[str], known: Mapping[str, bytes | None]) -> dict[str, bytes]:
        """The profile of each customer: the known one, or a candidate."""
        strangers = [name for name in names if known.get(name) is None]
        new = [
            Candidate(organization, identifier, name)
            for identifier, name in zip(new_uuids(len(strangers)), strangers, strict=True)
        ]
        self.candidates += new
        met = {name: identifier for name, identifier in known.items() if identifier is not None}
        return met | {one.name: one.id for one in new}

    def choose(
        self,
        organization: bytes,
        sales: Sequence[Sale],
        known: "_Known",
        customers: Mapping[str, bytes],
        *,
        tolerance: timedelta,
        are_found: bool,
    ) -> None:
        """Take in those of an organization's sales that the statement can decide."""
        chosen: list[_Chosen] = []
        seen: set[str] = set()
        for place, sale in enumerate(sales, self._asked):
            # A repeated ticket is not for this path, also when the first was not: it must not overtake the first.
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
            new = NewSale(organization, self._ids[place], sale, store.id, to_find, profile)
            chosen.append(_Chosen(place, new, store.shown))
        # In external_id order, so that two processes that share tickets do not wait for each other crosswise.
        chosen.sort(key=_BY_EXTERNAL_ID)
        self.chosen += chosen
        self._asked += len(sales)

    def as_new(self, kept: Sequence[Kept]) -> New:
        return New([one.new for one in self.chosen], self.candidates, kept, self.now)

    def keep(self, writes: Sequence[KeyedSale]) -> list[Kept]:
        """The answers that are kept."""
        return [
            Kept(one.new.id, key, write.fingerprint, self.encode_halves(one), write.notes)
            for one in self.chosen
            if (key := (write := writes[one.place]).key) is not None
        ]

    def answer(self, kept: Sequence[Kept], inserted: Inserted) -> list[Encode | None]:
        """The answer to each sale that went in, in its place."""
        answers: list[Encode | None] = [None] * self._asked
        went_in = _WentIn(self, inserted.profiles)
        halves = {one.sale: one.body for one in kept}
        for one in self.chosen:
            if one.new.id in inserted.profiles:
                body = halves.get(one.new.id)
                answers[one.place] = partial(went_in.encode, one) if body is None else partial(went_in.join, one, body)
        return answers

    def keep_whole(self, sizes: Iterable[int]) -> dict[int, list[_Chosen]]:
        """Of sales that were asked for in groups of these sizes, keep the groups of which all were chosen.

        Gives each by its number, with the sales in the order they were asked for.
        """
        by_place = {one.place: one for one in self.chosen}
        whole: dict[int, list[_Chosen]] = {}
        start = 0
        for number, size in enumerate(sizes):
            group = [by_place[place] for place in range(start, start + size) if place in by_place]
            if group and len(group) == size:
                whole[number] = group
            else:
                self.chosen = [one for one in self.chosen if not start <= one.place < start + size]
            start += size
        return whole

    @cached_property
    def _names(self) -> dict[bytes, str]:
        """The canonical ids of the sales, which are spelled together."""
        ids = [one.new.id for one in self.chosen]
        return dict(zip(ids, SALES_EVENT.spell(ids), strict=True))

    def encode(self, one: _Chosen, profile: str | None) -> bytes:
        """The body of the answer to a sale that is stored with the profile of this canonical id."""
        told, shown = one.new.told, None
        if profile is not None and isinstance(told.profile, ByExternalId):
            shown = ReferenceOut(profile, told.profile.external_id)
        return encode_new(
            told,
            self._names[one.new.id],
            store=one.store,
            profile=shown,
            created_at=self.now,
            state="not_applicable" if shown is None else freshness(told.occurred_at, now=self.now),
        )

    def encode_halves(self, one: _Chosen) -> Split:
        """The same for a profile that is not known yet."""
        if one.new.profile is None:
            return Split(self.encode(one, None), None)
        return split_at_profile(self.encode(one, UNKNOWN_PROFILE))


class _WentIn:
    """Sales of a batch that are stored, by their ids, with their profiles; it makes the answers to them."""

    def __init__(self, batch: _Batch, profiles: Mapping[bytes, bytes | None]) -> None:
        self._batch = batch
        self._profiles = profiles

    @cached_property
    def _names(self) -> dict[bytes | None, str]:
        """The canonical ids of the profiles, spelled together when the first answer is made."""
        ids = [identifier for identifier in set(self._profiles.values()) if identifier is not None]
        return dict(zip(ids, PROFILE.spell(ids), strict=True))

    def encode(self, one: _Chosen) -> bytes:
        return self._batch.encode(one, self._names.get(self._profiles[one.new.id]))

    def answer(self, ones: Iterable[_Chosen], join: Join) -> bytes:
        return join([self.encode(one) for one in ones])

    def join(self, one: _Chosen, halves: Split) -> bytes:
        return halves.join(self._names.get(self._profiles[one.new.id]))
