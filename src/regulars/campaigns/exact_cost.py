"""The exact parts and cost of a campaign before it is sent: its texts are rendered for the whole audience.

The worker takes a page of the audience at a time and stores what it has counted with the place of the next page, so
that a kill repeats at most one page. There is one count for a campaign and revision.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
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
from regulars.campaigns.rendering import load_values
from regulars.campaigns.text_sizes import AudienceSize, TextKey, add_up, size_text
from regulars.conditions.tree import All, Consent
from regulars.consent.numbers import find_text_numbers
from regulars.kit.db import Tx
from regulars.messaging.model import Reason
from regulars.messaging.number_location import locate_number
from regulars.messaging.settings.store import load_texting
from regulars.messaging.template import fields_of
from regulars.segments.analysis.client import Analysis
from regulars.segments.analysis.protocol import (
    AnalysisUnavailable,
    CursorExpired,
    Members,
    NotReady,
    SegmentQuery,
    parse_cursor,
)
from regulars.segments.audience import AudienceRefused
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due

QUEUE: Final = "campaigns.cost"
PAGE_CUSTOMERS: Final = 4_000
# Other work of the process gets a turn after so many texts.
_TURN_TEXTS: Final = 250
_KNOWN_MAX: Final = 50_000
_RETRY: Final = timedelta(seconds=5)


# The size of a text by its variant, country and values.
_Known = dict[tuple[str | int | None, ...], TextKey]


class _Counts(msgspec.Struct, frozen=True):
    held_out: int = 0
    texts: tuple[tuple[TextKey, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ExactCost:
    """`size` is None until all customers are rendered, and `reason` says why they cannot be."""

    customers: int
    rendered: int
    held_out: int
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
    return ExactCost(row.customers, row.rendered, counts.held_out, size, row.reason, row.requested_at, row.completed_at)


def _read_counts(row: CostRow) -> _Counts:
    return _Counts() if row.counts is None else msgspec.json.decode(row.counts, type=_Counts)


class CostClaim(NamedTuple):
    row: CostRow
    definition: Definition
    query: SegmentQuery


class CostQueue(ClaimQueue[CostClaim, Members | str]):
    name = QUEUE
    due = Due(table="campaign_costs")
    batch_rows = 2
    at_once_max = 2

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self._analysis = analysis
        # Of the campaign that was counted last.
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

    async def act(self, organization_id: UUID, claim: CostClaim) -> Members | str:
        """A page of the audience, or why there is none now."""
        after = None if claim.row.next_page is None else parse_cursor(claim.row.next_page)
        try:
            return await self._analysis.members(organization_id, claim.query, after=after, limit=PAGE_CUSTOMERS)
        except (NotReady, AnalysisUnavailable) as error:
            return str(error)
        except CursorExpired:
            return ""

    async def complete(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[CostClaim, Members | str]]) -> None:
        for claim, page in done:
            row = await queries.lock_cost(tx, organization_id, claim.row, owner=self.owner)
            if row is None:
                continue
            if isinstance(page, Members):
                counted = await _count_page(tx, organization_id, claim, page, self._known_of(claim))
                due_at = None if counted.completed_at is not None else tx.now
                await queries.save_cost(tx, organization_id, counted, due_at=due_at)
            elif page:
                await queries.save_cost(tx, organization_id, row._replace(reason=page), due_at=tx.now + _RETRY)
            else:
                # The customers have other numbers since the columns were built anew: begin again.
                again = row._replace(next_page=None, rendered=0, counts=None)
                await queries.save_cost(tx, organization_id, again, due_at=tx.now)
            tx.touched.add((QUEUE, organization_id))


async def _count_page(tx: Tx, organization_id: UUID, claim: CostClaim, page: Members, known: _Known) -> CostRow:
    counts = _read_counts(claim.row)
    held_out, texts = await _size_texts(tx, organization_id, claim, page.profile_ids, known)
    texts.update(dict(counts.texts))
    merged = _Counts(counts.held_out + held_out, tuple(texts.items()))
    return claim.row._replace(
        next_page=None if page.next is None else str(page.next),
        customers=page.total,
        rendered=claim.row.rendered + len(page.profile_ids),
        counts=msgspec.json.encode(merged).decode(),
        reason=None,
        completed_at=tx.now if page.next is None else None,
    )


async def _size_texts(
    tx: Tx, organization_id: UUID, claim: CostClaim, profile_ids: Sequence[UUID], known: _Known
) -> tuple[int, Counter[TextKey]]:
    """How many are held out, and the sizes of the others' texts. Equal values give equal texts, so each is rendered
    once."""
    definition, campaign_id = claim.definition, claim.row.campaign_id
    texting = await load_texting(tx, organization_id)
    if texting is None or not profile_ids:
        return 0, Counter()
    values = await load_values(tx, organization_id, definition, profile_ids, brand=texting.brand)
    numbers = await find_text_numbers(tx, organization_id, profile_ids)
    fields = [sorted(fields_of(variant.text)) for variant in definition.variants]
    sizes, held_out = Counter[TextKey](), 0
    for place, profile_id in enumerate(profile_ids):
        if place % _TURN_TEXTS == 0:
            await asyncio.sleep(0)
        arm = place_of(
            campaign_id, profile_id.bytes, holdout_percent=definition.holdout_percent, variants=definition.variants
        ).arm
        person, number = values.get(profile_id), numbers.get(profile_id)
        if arm == HELD_OUT_ARM:
            held_out += 1
        elif person is None or number is None:
            sizes[TextKey(arm, "", 0, is_unicode=False, reason=Reason.NO_CONSENT.value)] += 1
        else:
            country = locate_number(number.phone_number).country
            same = (arm, country, *(person.values.get(field) for field in fields[arm - 1]))
            size = known.get(same)
            if size is None:
                size = known[same] = size_text(arm, definition.variants[arm - 1].text, person.values, country, texting)
            sizes[size] += 1
    return held_out, sizes
