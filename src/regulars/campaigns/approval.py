"""Approval: above a number of recipients another person must approve a campaign. A change of the campaign voids it."""

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.campaigns import queries
from regulars.campaigns.errors import ApprovalNeeded
from regulars.campaigns.model import CampaignRow
from regulars.kit.db import Tx


class ApprovalRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """None: no campaign needs an approval."""

    recipients_max: Annotated[int, Meta(ge=0)] | None = None


async def load_rule(tx: Tx, organization_id: UUID) -> ApprovalRule:
    stored = await queries.find_settings(tx, organization_id)
    return ApprovalRule() if stored is None else msgspec.json.decode(stored, type=ApprovalRule)


async def save_rule(tx: Tx, organization_id: UUID, rule: ApprovalRule) -> None:
    await queries.upsert_settings(tx, organization_id, msgspec.json.encode(rule).decode())


async def require_approval(tx: Tx, organization_id: UUID, row: CampaignRow, *, recipients: int, by: str | None) -> None:
    """Raises `ApprovalNeeded` unless a person other than `by` approved this revision."""
    rule = await load_rule(tx, organization_id)
    if rule.recipients_max is None or recipients <= rule.recipients_max:
        return
    if row.approved_revision != row.revision or row.approved_by == by:
        raise ApprovalNeeded(f"More than {rule.recipients_max:,} recipients need the approval of another person.")
