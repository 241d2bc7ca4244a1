"""Computes the exact cost of a campaign before it is sent: renders the texts of the audience and counts SMS parts.

The worker counts a few pages of the audience at a time and stores the counts with the cursor of the next page, so that
a crash repeats at most a few pages. A campaign has one count, for its current revision.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.campaigns import cost_queries as queries
from regulars.campaigns.audience import resolve_definition
from regulars.campaigns.cost_queries import CostRow
from regulars.campaigns.definition import Definition, read_definition, read_stored_definition
from regulars.campaigns.manage import load_campaign
from regulars.campaigns.rendering import RecipientValues, load_values
from regulars.campaigns.text_sizes import AudienceSize, TextGroup, add_up, size_text
from regulars.columns.client import Analysis, AnalysisQueue
from regulars.columns.protocol import AnalysisUnavailable, CursorExpired, NotReady, SegmentQuery, parse_cursor
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.tree import All, Consent
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.experiments.arms import HELD_OUT_ARM, assign_arm
from regulars.experiments.holdout.groups import find_held_out
from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.db import Database, Tx
from regulars.segments.audience import AudienceRefused
from regulars.texts.model import SkipReason
from regulars.texts.number_location import locate_number
from regulars.texts.settings.store import Texting, load_texting
from regulars.texts.template import fields_of
from regulars.work.claims import CLAIM_FOR
from regulars.work.queue import Due, WaitLimit

QUEUE: Final = "campaigns.cost"
PAGE_CUSTOMERS: Final = 4_000
# The number of pages between two writes of the progress.
PAGES_PER_CLAIM: Final = 8
# After this many texts, rendering lets other tasks of the process run.
_YIELD_AFTER_TEXTS: Final = 250
_CACHED_SIZES_MAX: Final = 50_000
# How long a count waits if the analysis process cannot answer.
_RETRY_AFTER: Final = timedelta(seconds=5)
# The size of a text by the variant, the country and the values of variables.
_SizeCache = BoundedCache[tuple[str | int | None, ...], TextGroup]


class _Counts(msgspec.Struct, frozen=True):
    """The customers whom the campaign holds out, those in the global holdout, and the texts of all others."""

    held_out: int = 0
    global_holdout: int = 0
    texts: tuple[tuple[TextGroup, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ExactCost:
    """`size` is None until the texts of all customers are rendered; `reason` says why they cannot be rendered."""

    customers: int
    rendered: int
    held_out: int
    global_holdout: int
    size: AudienceSize | None
    reason: str | None
    requested_at: datetime
    completed_at: datetime | None


async def request_exact_cost(tx: Tx, organization_id: UUID, campaign_id: UUID) -> None:
    """Start the count, unless it is already running for this revision."""
    campaign = await load_campaign(tx, organization_id, campaign_id)
    if campaign.faults:
        raise DefinitionRefused(campaign.faults, "A campaign with faults cannot be counted: ")
    await queries.upsert_request(tx, organization_id, campaign_id, revision=campaign.row.revision)
    tx.queues_to_wake.add((QUEUE, organization_id))


async def find_exact_cost(tx: Tx, organization_id: UUID, campaign_id: UUID) -> ExactCost | None:
    """The exact cost of the current revision at current prices; None if it was not requested."""
    cost = await queries.find_cost(tx, organization_id, campaign_id)
    texting = await load_texting(tx, organization_id)
    if cost is None or texting is None:
        return None
    row, document = cost
    counts = _read_counts(row)
    size = None
    if row.completed_at is not None:
        # A page shows a damaged campaign too, with its faults.
        definition, _ = read_stored_definition(document)
        size = add_up(dict(counts.texts), definition.variants, texting.settings.prices)
    return ExactCost(
        row.customers,
        row.rendered,
        counts.held_out,
        counts.global_holdout,
        size,
        row.reason,
        row.requested_at,
        row.completed_at,
    )


def _read_counts(row: CostRow) -> _Counts:
    return _Counts() if row.counts is None else msgspec.json.decode(row.counts, type=_Counts)


class CostClaim(NamedTuple):
    """A count that this worker has claimed; `query` finds the customers of the audience who may be texted."""

    row: CostRow
    definition: Definition
    query: SegmentQuery


class _Page(NamedTuple):
    """A page of customers of the audience with their data, and the cursor of the next page."""

    profile_ids: Sequence[UUID]
    total: int
    next: str | None
    texting: Texting
    # The customers in the organization's global holdout.
    held_out: Collection[UUID]
    numbers: Mapping[UUID, TextNumber]
    values: Mapping[UUID, RecipientValues]


class CostQueue(AnalysisQueue[CostClaim, CostRow | None]):
    name = QUEUE
    due = Due(table="campaign_costs", waits=(WaitLimit(at_most=(CLAIM_FOR,), waits_again=True),))

    def __init__(self, analysis: Analysis, database: Database) -> None:
        super().__init__(analysis)
        self._database = database
        # The text sizes of as many counts as run at once, by campaign and request.
        self._caches = BoundedCache[tuple[UUID, datetime], _SizeCache](self.at_once_max)

    def _cache_for(self, claim: CostClaim) -> _SizeCache:
        """The cached text sizes of the campaign; a new request drops them, because settings may have changed."""
        count = (claim.row.campaign_id, claim.row.requested_at)
        return self._caches.find_or_add(count, lambda: _SizeCache(_CACHED_SIZES_MAX))

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[CostClaim]:
        del lowest  # all claims have the same priority
        claimed = []
        for row, document in await queries.claim_due(tx, organization_id, limit=limit, owner=owner, until=until):
            try:
                definition = read_definition(document.encode())
                query = await resolve_definition(tx, organization_id, definition)
            except (AudienceRefused, DefinitionRefused) as error:
                await queries.save_cost(tx, organization_id, row._replace(reason=str(error)), due_at=None)
                continue
            may_be_texted = All(of=(query.match, Consent(state="may_be_texted")))
            claimed.append(CostClaim(row, definition, msgspec.structs.replace(query, match=may_be_texted)))
        return claimed

    async def act(self, organization_id: UUID, claim: CostClaim) -> CostRow | None:
        """Count the next pages and return the row; None if the count must start again, because the analysis process
        refuses the cursor. The next page is loaded while the current page is rendered."""
        cache = self._cache_for(claim)
        row = claim.row
        loading = asyncio.create_task(self._load_page(organization_id, claim, row.next_page))
        try:
            for number in range(PAGES_PER_CLAIM):
                page = await loading
                is_last = number == PAGES_PER_CLAIM - 1 or page.next is None
                if not is_last:
                    loading = asyncio.create_task(self._load_page(organization_id, claim, page.next))
                row = await _count_page(claim, row, page, cache)
                if is_last:
                    break
        except (NotReady, AnalysisUnavailable) as error:
            return row._replace(reason=str(error))
        except CursorExpired:
            return None
        finally:
            loading.cancel()
        return row

    async def _load_page(self, organization_id: UUID, claim: CostClaim, cursor: str | None) -> _Page:
        after = None if cursor is None else parse_cursor(cursor)
        members = await self._analysis.members(organization_id, claim.query, after=after, limit=PAGE_CUSTOMERS)
        ids = members.profile_ids
        async with self._database.reading() as tx:
            texting = await load_texting(tx, organization_id)
            if texting is None:
                raise AnalysisUnavailable("There is no organization with this id.")
            held_out = await find_held_out(tx, organization_id, ids, at=tx.now)
            numbers = await find_text_numbers(tx, organization_id, ids)
            values = await load_values(tx, organization_id, claim.definition, ids, brand=texting.brand)
        next_cursor = None if members.next is None else str(members.next)
        return _Page(ids, members.total, next_cursor, texting, held_out, numbers, values)

    async def complete(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[CostClaim, CostRow | None]]) -> None:
        for claim, counted in done:
            row = await queries.lock_cost(tx, organization_id, claim.row, owner=self.owner)
            if row is None:
                continue
            if counted is None:
                restarted = row._replace(next_page=None, rendered=0, counts=None)
                await queries.save_cost(tx, organization_id, restarted, due_at=tx.now)
            elif counted.reason is not None:
                await queries.save_cost(tx, organization_id, counted, due_at=tx.now + _RETRY_AFTER)
            elif counted.next_page is None:
                await queries.save_cost(tx, organization_id, counted._replace(completed_at=tx.now), due_at=None)
            else:
                await queries.save_cost(tx, organization_id, counted, due_at=tx.now)
            tx.queues_to_wake.add((QUEUE, organization_id))


async def _count_page(claim: CostClaim, row: CostRow, page: _Page, cache: _SizeCache) -> CostRow:
    """Add the texts of a page of customers to the counts of the row."""
    counts = _read_counts(row)
    held_out, texts = await _size_texts(claim, page, cache)
    texts.update(dict(counts.texts))
    merged = _Counts(counts.held_out + held_out, counts.global_holdout + len(page.held_out), tuple(texts.items()))
    return row._replace(
        next_page=page.next,
        customers=page.total,
        rendered=row.rendered + len(page.profile_ids),
        counts=msgspec.json.encode(merged).decode(),
        reason=None,
    )


async def _size_texts(claim: CostClaim, page: _Page, cache: _SizeCache) -> tuple[int, Counter[TextGroup]]:
    """How many customers of the page the campaign holds out, and how many texts have each size. Equal values give equal
    texts, so each different text is rendered only once."""
    campaign_id, variants = claim.row.campaign_id, claim.definition.variants
    fields = [sorted(fields_of(variant.text)) for variant in variants]
    sizes, held_out = Counter[TextGroup](), 0
    for index, profile_id in enumerate(page.profile_ids):
        if index % _YIELD_AFTER_TEXTS == 0:
            await asyncio.sleep(0)
        arm = assign_arm(
            campaign_id, profile_id.bytes, holdout_percent=claim.definition.holdout_percent, variants=variants
        ).arm
        person, number = page.values.get(profile_id), page.numbers.get(profile_id)
        if profile_id in page.held_out:
            continue
        if arm == HELD_OUT_ARM:
            held_out += 1
        elif person is None or number is None:
            sizes[TextGroup(arm, "", 0, is_unicode=False, reason=SkipReason.NO_CONSENT.value)] += 1
        else:
            country = locate_number(number.phone_number).country
            cache_key = (arm, country, *(person.values.get(field) for field in fields[arm - 1]))
            size = cache.entries.get(cache_key)
            if size is None:
                size = size_text(arm, variants[arm - 1].text, person.values, country, page.texting)
                cache.add(cache_key, size)
            sizes[size] += 1
    return held_out, sizes
