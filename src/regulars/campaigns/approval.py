"""Approval: a campaign with many recipients or a high cost needs the approval of a second person. A change of the
campaign voids the approval."""

from decimal import Decimal
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.campaigns.confirmed_numbers import Cost, find_cost_fault
from regulars.campaigns.errors import ApprovalNeeded, NotPossible
from regulars.campaigns.model import CampaignRow
from regulars.kit.db import Tx


class ApprovalRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits above which a campaign needs an approval; without limits no campaign needs one."""

    recipients_max: Annotated[int, Meta(ge=0)] | None = None
    # Amounts by currency; a currency that is not listed has no limit.
    cost_max: dict[str, Decimal] = {}


async def load_rule(tx: Tx, organization_id: UUID) -> ApprovalRule:
    rows = await tx.fetch("SELECT settings::text FROM campaign_settings WHERE organization_id = %s", (organization_id,))
    return msgspec.json.decode(rows[0][0], type=ApprovalRule) if rows else ApprovalRule()


async def save_rule(tx: Tx, organization_id: UUID, rule: ApprovalRule) -> None:
    require_amounts(rule.cost_max)
    await tx.execute(
        """
        INSERT INTO campaign_settings (organization_id, settings, updated_at) VALUES (%s, %s::json, %s)
        ON CONFLICT (organization_id) DO UPDATE SET settings = EXCLUDED.settings, updated_at = EXCLUDED.updated_at
        """,
        (organization_id, msgspec.json.encode(rule).decode(), tx.now),
    )


def require_amounts(cost: Cost | None) -> None:
    """Raises `NotPossible` unless all amounts can be compared with others."""
    fault = find_cost_fault(cost)
    if fault is not None:
        raise NotPossible(fault)


def why_approval_needed(rule: ApprovalRule, *, recipients: int, cost: Cost | None) -> str | None:
    """Why an approval is needed, as a sentence; None if it is not. An unknown cost may be above the limit."""
    if rule.recipients_max is not None and recipients > rule.recipients_max:
        return f"More than {rule.recipients_max:,} recipients need the approval of another person."
    for currency, limit in sorted(rule.cost_max.items()):
        if cost is None or cost.get(currency, Decimal(0)) > limit:
            subject = "An unknown cost" if cost is None else f"A cost above {limit:,.2f} {currency}"
            return f"{subject} needs the approval of another person."
    return None


async def require_approval(
    tx: Tx, organization_id: UUID, row: CampaignRow, *, recipients: int, cost: Cost | None, by: str | None
) -> None:
    """Raises `ApprovalNeeded` unless a person other than `by` approved this revision."""
    why = why_approval_needed(await load_rule(tx, organization_id), recipients=recipients, cost=cost)
    if why is not None and (row.approved_revision != row.revision or row.approved_by == by):
        raise ApprovalNeeded(why)
