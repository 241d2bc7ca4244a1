"""Stores the recipients of a campaign from its fixed audience, one piece (a batch of profile ids) in each transaction.
Texts are queued only after all recipients are stored."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.campaigns.definition import Definition, SendAtLocalTime, read_definition
from regulars.campaigns.model import HELD_OUT_ARM, NO_ARM, PIECE_IDS, RecipientOutcome, assign_arm, share_position
from regulars.campaigns.retention import split_ids
from regulars.campaigns.run import queries, recipient_queries
from regulars.campaigns.run.queries import DueCampaign
from regulars.campaigns.run.recipient_queries import NewRecipient
from regulars.campaigns.totals import Differences, TotalKey
from regulars.consent.numbers import find_text_numbers
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.messaging.holdout.groups import find_held_out
from regulars.messaging.number_location import locate_number, zones_by_country
from regulars.sales.home_stores import find_home_stores
from regulars.segments.saved.resolve import load_context

# Recipients of the same outcome and block share an entry of the index by outcome. Lists read a whole block and sort it.
BLOCK_RECIPIENTS: Final = 1_000


async def prepare_piece(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> None:
    """Store the next piece of recipients; the caller has locked the campaign."""
    next_piece = await queries.find_piece(tx, organization_id, campaign.id)
    if next_piece is None:
        await queries.begin_sending(tx, organization_id, campaign.id)
        return
    piece, content = next_piece
    definition = read_definition(campaign.definition.encode())
    profile_ids = [UUID(bytes=it) for it in split_ids(content)]
    open_at = await _find_open_times(tx, organization_id, campaign, definition, profile_ids)
    # The global holdout of the time when the audience was fixed, even if a new quarter has begun since.
    held_out = await find_held_out(tx, organization_id, profile_ids, at=campaign.frozen_at or tx.now)
    recipients = []
    for place, it in enumerate(profile_ids):
        arm, position = assign_arm(
            campaign.id, it.bytes, holdout_percent=definition.holdout_percent, variants=definition.variants
        )
        outcome = RecipientOutcome.HELD_OUT if arm == HELD_OUT_ARM else RecipientOutcome.WAITING
        if it in held_out:
            # Customers of the global holdout are in no arm of this campaign.
            arm, outcome = NO_ARM, RecipientOutcome.GLOBAL_HOLDOUT
        block = (piece * PIECE_IDS + place) // BLOCK_RECIPIENTS
        position = share_position(position, recipients=campaign.confirmed_recipients or 0)
        recipients.append(NewRecipient(it, block, arm, position, outcome.value, open_at.get(it, tx.now)))
    stored = Counter(await recipient_queries.insert_recipients(tx, organization_id, campaign.id, recipients))
    differences = Differences()
    for arm_and_outcome, recipients_stored in stored.items():
        differences.add(TotalKey(campaign.id, *arm_and_outcome), recipients_stored)
    await queries.delete_piece(tx, organization_id, campaign.id, piece)
    await queries.set_due(tx, organization_id, campaign.id, tx.now)
    await differences.write(tx, organization_id)
    failpoint.hit("campaign.prepared", tx.connection.drop_connection)


async def _find_open_times(
    tx: Tx, organization_id: UUID, campaign: DueCampaign, definition: Definition, profile_ids: Sequence[UUID]
) -> dict[UUID, datetime]:
    """When the text of each recipient may be queued. A local time is in the first time zone of the number; feeding
    checks the permitted hours of all its zones. If the number belongs to no country, the zone is that of the country of
    the customer's home store, or else of the organization. A recipient without a number is absent: the text is queued
    at once, and the checks before sending skip it.
    """
    if not isinstance(definition.schedule, SendAtLocalTime):
        return dict.fromkeys(profile_ids, campaign.starts_at or tx.now)
    day, clock = definition.schedule.day, time.fromisoformat(definition.schedule.time)
    numbers = await find_text_numbers(tx, organization_id, profile_ids)
    zones = {it: locate_number(number.phone_number).zones for it, number in numbers.items()}
    without_zone = [it for it, zones_of_number in zones.items() if not zones_of_number]
    if without_zone:
        default_zone = (await load_context(tx, organization_id, [])).zone.key
        stores = await find_home_stores(tx, organization_id, without_zone)
        for it in without_zone:
            country = stores[it].country if it in stores else None
            zones[it] = zones_by_country().get(country or "") or (default_zone,)
    return {it: datetime.combine(day, clock, ZoneInfo(names[0])).astimezone(UTC) for it, names in zones.items()}
