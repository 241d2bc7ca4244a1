"""The limits of an organization above which a campaign needs the approval of a second person."""

from decimal import Decimal
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.campaigns.confirmed_numbers import Cost, RecipientsAndCost, find_cost_fault
from regulars.kit.db import Tx
from regulars.kit.refusals import NotPossible


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


def find_excess(rule: ApprovalRule, most: RecipientsAndCost, approved: RecipientsAndCost | None = None) -> str | None:
    """What exceeds the limits and is not covered by the approved numbers, as a sentence; None if nothing does.

    An unknown cost may be above a limit, so it needs an approval of an unknown cost.
    """
    if _exceeds(most.recipients, rule.recipients_max, None if approved is None else approved.recipients):
        return (
            f"Up to {most.recipients:,} customers may get the text. More than {rule.recipients_max:,} recipients need"
            " the approval of another person."
        )
    for currency, limit in sorted(rule.cost_max.items()):
        if most.cost is None:
            if approved is None or approved.cost is not None:
                return "A price is missing, or no cost was given. An unknown cost needs the approval of another person."
            continue
        amount = most.cost.get(currency, Decimal(0))
        covered = None if approved is None or approved.cost is None else approved.cost.get(currency, Decimal(0))
        if _exceeds(amount, limit, covered):
            return (
                f"The texts may cost up to {amount:,.2f} {currency}. A cost above {limit:,.2f} {currency} needs the"
                " approval of another person."
            )
    return None


def _exceeds(most: int | Decimal, limit: int | Decimal | None, approved: int | Decimal | None) -> bool:
    return limit is not None and most > limit and (approved is None or most > approved)
