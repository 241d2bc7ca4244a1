"""Renders two cards for pages of other packages: which text a ticket (a sale) is credited to and why, and which tickets
are credited to a text."""

from datetime import datetime, timedelta
from typing import Final

from markupsafe import Markup

from regulars.attribution.credits import CreditFilter, list_credits
from regulars.attribution.explain import CreditExplanation, NoCredit, explain_sale
from regulars.attribution.model import TOUCHING_ORIGINS, TOUCHING_STATES, Credit, TouchKind, Windows
from regulars.attribution.pages.links import name_origins, text_url, tickets_url
from regulars.attribution.windows import list_versions, windows_of_text
from regulars.kit.db import Tx
from regulars.kit.ids import TEXT
from regulars.kit.keyset import PageRequest
from regulars.sales.model import StoredSale
from regulars.texts.model import TextRow
from regulars.web.format import Format
from regulars.web.render import render_part
from regulars.web.visit import Visit

TICKETS_SHOWN: Final = 5
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# How a sentence names the touch, and how the next sentence names it as its subject.
_CLICK_PHRASES: Final = ("a click on the link in a text", "A click")
_TEXT_PHRASES: Final = ("a text", "A text without a click")
_NO_CREDIT_SENTENCES: Final = {
    NoCredit.RETURN: "A return is attributed to no text. It is deducted from the purchase that it belongs to.",
    NoCredit.NO_CUSTOMER: "No customer is linked to this ticket, so no text can have led to it.",
    NoCredit.NO_TEXT: "No text reached the customer in the 90 days before the purchase.",
    NoCredit.TOO_LATE: "The ticket arrived too late: the figures of this text were final, 60 days after it.",
    NoCredit.WAITING: "We are still working on it. Look again in a moment.",
}


async def ticket_card(tx: Tx, visit: Visit, sale: StoredSale) -> Markup:
    """Which text a ticket is credited to and why, or why to none."""
    explanation = await explain_sale(
        tx,
        visit.organization_id,
        sale.id,
        is_return=sale.ticket.type != "PURCHASE",
        profile_id=None if sale.profile is None else sale.profile.id,
        occurred_at=sale.ticket.occurred_at,
    )
    credit = explanation.credit
    names = {} if credit is None else await name_origins(tx, visit, [credit.origin])
    text_id = (
        credit.text_id if credit is not None else explanation.touch.text_id if explanation.touch is not None else None
    )
    return render_part(
        visit,
        "attribution/ticket_card.html",
        credit=credit,
        why=_explain_none(visit.format, explanation, sale.ticket.occurred_at)
        if credit is None
        else _explain(visit.format, credit),
        origin=None if credit is None else names[credit.origin_id],
        text_url="" if text_id is None else text_url(visit, text_id),
    )


async def text_card(tx: Tx, visit: Visit, text: TextRow) -> Markup:
    """The tickets that are credited to a text, or why there are none."""
    filters = CreditFilter(text_id=text.id)
    lines = await list_credits(tx, visit.organization_id, filters, PageRequest(TICKETS_SHOWN + 1))
    versions = await list_versions(tx, visit.organization_id)
    windows = windows_of_text(versions, text.claimed_at or text.created_at)
    return render_part(
        visit,
        "attribution/text_card.html",
        lines=[(line, describe_delay(line.credit)) for line in lines[:TICKETS_SHOWN]],
        more_url=tickets_url(visit, None, text=TEXT.encode(text.id)) if len(lines) > TICKETS_SHOWN else "",
        why_none=_explain_no_tickets(visit.format, text, windows),
    )


def _explain(formats: Format, credit: Credit) -> str:
    touch, subject = _CLICK_PHRASES if credit.touch == TouchKind.CLICK else _TEXT_PHRASES
    window = _describe_window(formats, timedelta(hours=credit.window_hours))
    return f"The customer bought {describe_delay(credit)} {touch}. {subject} counts for {window}."


def describe_delay(credit: Credit) -> str:
    """How long after the touch the customer bought, such as "3 h after"."""
    return _format_delay(credit.occurred_at - credit.touched_at)


def _format_delay(delay: timedelta) -> str:
    for unit, symbol in ((_DAY, "d"), (_HOUR, "h")):
        if delay >= unit:
            return f"{delay // unit} {symbol} after"
    return f"{delay // _MINUTE} min after"


def _explain_none(formats: Format, explanation: CreditExplanation, occurred_at: datetime) -> str:
    if explanation.touch is None or explanation.window is None:
        return _NO_CREDIT_SENTENCES[explanation.reason or NoCredit.NO_TEXT]
    touch = "a click" if explanation.touch.kind is TouchKind.CLICK else _TEXT_PHRASES[0]
    delay = _format_delay(occurred_at - explanation.touch.at)
    if explanation.reason is NoCredit.OUTSIDE_WINDOW:
        window = _describe_window(formats, explanation.window)
        return f"The customer bought {delay} {touch}; that counts only for {window}."
    return f"The customer bought {delay} {touch}. {_NO_CREDIT_SENTENCES[explanation.reason or NoCredit.WAITING]}"


def _explain_no_tickets(formats: Format, text: TextRow, windows: Windows) -> str:
    if text.origin_kind not in TOUCHING_ORIGINS:
        return "Purchases are not attributed to a confirmation, an answer or a test text."
    if text.state not in TOUCHING_STATES:
        return "No purchase is attributed to a text that was not sent."
    return f"No purchase is attributed to this text. A purchase counts within {_describe_windows(formats, windows)}."


def _describe_windows(formats: Format, windows: Windows) -> str:
    delivery, click = (_describe_window(formats, windows.of(kind)) for kind in (TouchKind.DELIVERY, TouchKind.CLICK))
    return f"{delivery} after the text, or {click} after a click"


def _describe_window(formats: Format, window: timedelta) -> str:
    """The window in days if it has two or more whole days; otherwise in hours."""
    days, remainder = divmod(window, _DAY)
    return formats.count(window // _HOUR, "hour") if remainder or days == 1 else formats.count(days, "day")
