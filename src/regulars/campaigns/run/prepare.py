"""Stores the recipients of a campaign from its fixed audience, one piece (a batch of profile ids) in each transaction.
Texts are queued only after all recipients are stored."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.campaigns.definition import Definition, SendAtLocalTime, read_definition
from regulars.campaigns.local_times import find_local_times
from regulars.campaigns.model import PIECE_IDS, RecipientOutcome
from regulars.campaigns.retention import split_ids
from regulars.campaigns.run import queries, recipient_queries
from regulars.campaigns.run.queries import DueCampaign
from regulars.campaigns.run.recipient_queries import NewRecipient
from regulars.campaigns.totals import Differences, TotalKey
from regulars.experiments.arms import HELD_OUT_ARM, NO_ARM, assign_arm, share_position
from regulars.experiments.holdout.groups import find_held_out
from regulars.kit import failpoint
from regulars.kit.db import Tx

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
    """When the text of each recipient may be queued. A recipient without a number is absent: the text is queued at
    once, and the checks before sending skip it."""
    if isinstance(definition.schedule, SendAtLocalTime):
        return await find_local_times(tx, organization_id, definition.schedule, profile_ids)
    return dict.fromkeys(profile_ids, campaign.starts_at or tx.now)
