"""The exact parts and cost of a campaign before it is sent: its texts are rendered for the whole audience.

The worker takes a few pages of the audience at a time and stores what it has counted with the place of the next page,
so that a kill repeats at most a few pages. There is one count for a campaign and revision.
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
from regulars.campaigns.definition import Definition, read_definition
from regulars.campaigns.errors import DefinitionRefused
from regulars.campaigns.manage import load_campaign
from regulars.campaigns.model import HELD_OUT_ARM, place_of
from regulars.campaigns.rendering import RecipientValues, load_values
from regulars.campaigns.text_sizes import AudienceSize, TextKey, add_up, size_text
from regulars.conditions.tree import All, Consent
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.kit.db import Database, Tx
from regulars.messaging.holdout.groups import find_held_out
from regulars.messaging.model import SkipReason
from regulars.messaging.number_location import locate_number
from regulars.messaging.settings.store import Texting, load_texting
from regulars.messaging.template import fields_of
from regulars.segments.analysis.client import Analysis
from regulars.segments.analysis.protocol import (
    AnalysisUnavailable,
    CursorExpired,
    NotReady,
    SegmentQuery,
    parse_cursor,
)
from regulars.segments.audience import AudienceRefused
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due

QUEUE: Final = "campaigns.cost"
PAGE_CUSTOMERS: Final = 4_000
# Between two writes of how far the count is.
PAGES_AT_ONCE: Final = 8
# Other work of the process gets a turn after so many texts.
_TURN_TEXTS: Final = 250
_KNOWN_MAX: Final = 50_000
_RETRY: Final = timedelta(seconds=5)


# The size of a text by its variant, country and values.
_Known = dict[tuple[str | int | None, ...], TextKey]


class _Counts(msgspec.Struct, frozen=True):
    held_out: int = 0
    global_holdout: int = 0
    texts: tuple[tuple[TextKey, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ExactCost:
    """`size` is None until all customers are rendered, and `reason` says why they cannot be."""

    customers: int
    rendered: int
    held_out: int
    global_holdout: int
    size: AudienceSize | None
    reason: str | None
    requested_at: datetime
    completed_at: datetime | None


async def request_exact_cost(tx: Tx, organization_id: UUID, campaign_id: UUID) -> None:
    """Begin to count, unless this revision is being counted already."""
    campaign = await load_campaign(tx, organization_id, campaign_id)
    if campaign.faults:
        raise DefinitionRefused("A campaign with faults cannot be counted.")
    await queries.upsert_request(tx, organization_id, campaign_id, revision=campaign.row.revision)
    tx.touched.add((QUEUE, organization_id))


async def find_exact_cost(tx: Tx, organization_id: UUID, campaign_id: UUID) -> ExactCost | None:
    """Of the current revision, with the prices of now; None where it was not requested."""
    found = await queries.find_cost(tx, organization_id, campaign_id)
    texting = await load_texting(tx, organization_id)
    if found is None or texting is None:
        return None
    row, definition = found
    counts = _read_counts(row)
    size = None
    if row.completed_at is not None:
        size = add_up(dict(counts.texts), read_definition(definition.encode()).variants, texting.settings.prices)
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
    row: CostRow
    definition: Definition
    query: SegmentQuery


class _Page(NamedTuple):
    """Some customers of the audience, and where the next page begins."""

    profile_ids: Sequence[UUID]
    total: int
    next: str | None
    texting: Texting
    # By the global holdout.
    held_out: Collection[UUID]
    numbers: Mapping[UUID, TextNumber]
    values: Mapping[UUID, RecipientValues]


class CostQueue(ClaimQueue[CostClaim, CostRow | None]):
    name = QUEUE
    due = Due(table="campaign_costs")
    batch_rows = 2
    at_once_max = 2

    def __init__(self, analysis: Analysis, database: Database) -> None:
        super().__init__()
        self._analysis = analysis
        self._database = database
        # Sizes of the texts of the campaign that was counted last.
        self._known: tuple[CostRow, _Known] | None = None

    def _known_of(self, claim: CostClaim) -> _Known:
        """Sizes of texts that were rendered already. They end with the request: settings may change after it."""
        row, known = self._known or (claim.row, {})
        is_same = (row.campaign_id, row.requested_at) == (claim.row.campaign_id, claim.row.requested_at)
        if not is_same or len(known) > _KNOWN_MAX:
            known = {}
        self._known = (claim.row, known)
        return known

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[CostClaim]:
        del lowest  # all have one priority
        claimed = []
        for row, definition in await queries.claim_due(tx, organization_id, limit=limit, owner=owner, until=until):
            given = read_definition(definition.encode())
            try:
                query = await resolve_definition(tx, organization_id, given)
            except AudienceRefused as error:
                await queries.save_cost(tx, organization_id, row._replace(reason=str(error)), due_at=None)
                continue
            reached = All(of=(query.match, Consent(state="may_be_texted")))
            claimed.append(CostClaim(row, given, msgspec.structs.replace(query, match=reached)))
        return claimed

    async def act(self, organization_id: UUID, claim: CostClaim) -> CostRow | None:
        """The row with some more pages counted; None: the customers have other numbers since the columns were built
        anew, and the count begins again. The database loads the next page while this process renders one."""
        known = self._known_of(claim)
        row = claim.row
        loading = asyncio.create_task(self._load_page(organization_id, claim, row.next_page))
        try:
            for number in range(PAGES_AT_ONCE):
                page = await loading
                is_last = number == PAGES_AT_ONCE - 1 or page.next is None
                if not is_last:
                    loading = asyncio.create_task(self._load_page(organization_id, claim, page.next))
                row = await _count_page(claim, row, page, known)
                if is_last:
                    break
        except (NotReady, AnalysisUnavailable) as error:
            return row._replace(reason=str(error))
        except CursorExpired:
            return None
        finally:
            loading.cancel()
        return row

    async def _load_page(self, organization_id: UUID, claim: CostClaim, place: str | None) -> _Page:
        after = None if place is None else parse_cursor(place)
        members = await self._analysis.members(organization_id, claim.query, after=after, limit=PAGE_CUSTOMERS)
        ids = members.profile_ids
        async with self._database.reading() as tx:
            texting = await load_texting(tx, organization_id)
            if texting is None:
                raise AnalysisUnavailable("There is no organization with this id.")
            held_out = await find_held_out(tx, organization_id, ids, at=tx.now)
            numbers = await find_text_numbers(tx, organization_id, ids)
            values = await load_values(tx, organization_id, claim.definition, ids, brand=texting.brand)
        following = None if members.next is None else str(members.next)
        return _Page(ids, members.total, following, texting, held_out, numbers, values)

    async def complete(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[CostClaim, CostRow | None]]) -> None:
        for claim, counted in done:
            row = await queries.lock_cost(tx, organization_id, claim.row, owner=self.owner)
            if row is None:
                continue
            if counted is None:
                again = row._replace(next_page=None, rendered=0, counts=None)
                await queries.save_cost(tx, organization_id, again, due_at=tx.now)
            elif counted.reason is not None:
                await queries.save_cost(tx, organization_id, counted, due_at=tx.now + _RETRY)
            elif counted.next_page is None:
                await queries.save_cost(tx, organization_id, counted._replace(completed_at=tx.now), due_at=None)
            else:
                await queries.save_cost(tx, organization_id, counted, due_at=tx.now)
            tx.touched.add((QUEUE, organization_id))


async def _count_page(claim: CostClaim, row: CostRow, page: _Page, known: _Known) -> CostRow:
    """The row with the texts of one more page."""
    counts = _read_counts(row)
    held_out, texts = await _size_texts(claim, page, known)
    texts.update(dict(counts.texts))
    merged = _Counts(counts.held_out + held_out, counts.global_holdout + len(page.held_out), tuple(texts.items()))
    return row._replace(
        next_page=page.next,
        customers=page.total,
        rendered=row.rendered + len(page.profile_ids),
        counts=msgspec.json.encode(merged).decode(),
        reason=None,
    )


async def _size_texts(claim: CostClaim, page: _Page, known: _Known) -> tuple[int, Counter[TextKey]]:
    """How many are held out, and the sizes of the others' texts. Equal values give equal texts, so each is rendered
    once."""
    campaign_id, variants = claim.row.campaign_id, claim.definition.variants
    fields = [sorted(fields_of(variant.text)) for variant in variants]
    sizes, held_out = Counter[TextKey](), 0
    for place, profile_id in enumerate(page.profile_ids):
        if place % _TURN_TEXTS == 0:
            await asyncio.sleep(0)
        arm = place_of(
            campaign_id, profile_id.bytes, holdout_percent=claim.definition.holdout_percent, variants=variants
        ).arm
        person, number = page.values.get(profile_id), page.numbers.get(profile_id)
        if profile_id in page.held_out:
            continue
        if arm == HELD_OUT_ARM:
            held_out += 1
        elif person is None or number is None:
            sizes[TextKey(arm, "", 0, is_unicode=False, reason=SkipReason.NO_CONSENT.value)] += 1
        else:
            country = locate_number(number.phone_number).country
            same = (arm, country, *(person.values.get(field) for field in fields[arm - 1]))
            size = known.get(same)
            if size is None:
                size = known[same] = size_text(arm, variants[arm - 1].text, person.values, country, page.texting)
            sizes[size] += 1
    return held_out, sizes
