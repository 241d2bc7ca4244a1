"""The settings page for the limits (recipients, cost) above which another person must approve a campaign."""

import re
from decimal import Decimal
from typing import Final

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.campaigns.approval_rule import ApprovalRule, load_rule, save_rule
from regulars.campaigns.confirmed_numbers import RECIPIENTS_MAX
from regulars.campaigns.manage import PATH
from regulars.texts.settings.currencies import is_currency
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.visit import Visit

# How many cost limits, one for each currency, the form has.
ROWS_MAX: Final = 10
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,2})?")


async def show_approval(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        rule = await load_rule(tx, visit.organization_id)
    values = {"recipients": "" if rule.recipients_max is None else str(rule.recipients_max)}
    for row, (currency, amount) in enumerate(rule.cost_max.items()):
        values |= {f"currency_{row}": currency, f"cost_{row}": str(amount)}
    return await _render_page(visit, FormState(values))


async def save_approval(visit: Visit) -> Response:
    form = FormState(visit.form, again=_render_page)
    recipients = None
    if form.value("recipients").strip():
        recipients = form.integer("recipients", minimum=0, maximum=RECIPIENTS_MAX)
    rule = ApprovalRule(recipients, _read_costs(form))
    form.check()
    async with visit.database.transaction() as tx:
        before = await load_rule(tx, visit.organization_id)
        await save_rule(tx, visit.organization_id, rule)
        await record_act(
            tx, visit, "campaign.approval", "", before=msgspec.to_builtins(before), after=msgspec.to_builtins(rule)
        )
    return redirect(visit, visit.url(PATH), done="Approval rule saved.")


async def _render_page(visit: Visit, form: FormState) -> Response:
    filled = [row for row in range(ROWS_MAX) if form.value(f"cost_{row}").strip()]
    empty = [row for row in range(ROWS_MAX) if row not in filled][:1]
    return render_form(visit, "campaigns/approval_rule.html", form, rows=[*filled, *empty])


def _read_costs(form: FormState) -> dict[str, Decimal]:
    """Read the cost limits by currency; a row of the form without an amount sets no limit."""
    costs: dict[str, Decimal] = {}
    for row in range(ROWS_MAX):
        amount, currency = form.value(f"cost_{row}").strip(), form.value(f"currency_{row}").strip().upper()
        if not amount:
            continue
        if _AMOUNT.fullmatch(amount) is None:
            form.refuse(f"cost_{row}", "Enter an amount such as 250 or 99.50.")
        elif not is_currency(currency):
            form.refuse(f"currency_{row}", "Enter three letters such as EUR.")
        elif currency in costs:
            form.refuse(f"currency_{row}", "Enter one limit for each currency.")
        else:
            costs[currency] = Decimal(amount)
    return costs
