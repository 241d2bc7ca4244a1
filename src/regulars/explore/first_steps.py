"""The commands from an empty server to a first ticket, with the address of this server."""

from dataclasses import dataclass
from datetime import datetime

from regulars.explore.reference import curl


@dataclass(frozen=True, slots=True)
class FirstStep:
    title: str
    text: str
    command: str


def first_steps(base: str, *, today: datetime) -> tuple[FirstStep, ...]:
    return (
        FirstStep(
            "Create an organization and a key",
            "On the machine that runs this server, in the folder of the clone, with the server's own settings."
            " The key is shown this once; here it goes into a variable.",
            '.venv/bin/regulars organization create "My shop"\n'
            'KEY=$(.venv/bin/regulars key create --organization "My shop")',
        ),
        store_step(base),
        ticket_step(base, today=today),
        FirstStep(
            "Read it back",
            "By your own ticket number, as one path segment, or by the `evt_` id of the answer.",
            curl(f"{base}/v1/sales-events/PARIS-1%3A4711"),
        ),
        consent_step(base, today=today),
        FirstStep(
            "Or begin with what you have",
            "Files of stores, profiles, sales and consents, as CSV, spreadsheets or NDJSON; or two years of a made-up"
            " chain of shops to look around in.",
            '.venv/bin/regulars import sales tickets.csv --organization "My shop" --dry-run\n.venv/bin/regulars demo',
        ),
    )


def store_step(base: str) -> FirstStep:
    return FirstStep(
        "Send a store",
        "Under your own code for it. Sending it again updates it.",
        curl(f"{base}/v1/stores", body='{"external_id": "PARIS-1", "name": "Rue de Rivoli"}'),
    )


def ticket_step(base: str, *, today: datetime) -> FirstStep:
    return FirstStep(
        "Send a ticket",
        "The customer `C-100` is new, so the ticket creates a customer with only an ID. Send it twice: the second"
        " answer is 200 with the first sale, and nothing was written again.",
        curl(f"{base}/v1/sales-events", body=_TICKET.replace("MIDNIGHT", _midnight(today))),
    )


def consent_step(base: str, *, today: datetime) -> FirstStep:
    return FirstStep(
        "Record a consent",
        "So that this customer may be texted. Name the terms and the words that they agreed to: that is your proof.",
        curl(f"{base}/v1/subscriptions/opt-in", body=_CONSENT.replace("MIDNIGHT", _midnight(today))),
    )


def _midnight(today: datetime) -> str:
    """A time in the past that is recent enough for automations. It is the same when the page is loaded again on the
    same day, so that a ticket that is sent twice is the same ticket."""
    return today.strftime("%Y-%m-%dT00:00:00Z")


_CONSENT = """\
{
    "phone_number": "+33639980000", "profile_id": "C-100",
    "consent_source": "POINT_OF_SALE", "consented_at": "MIDNIGHT",
    "consent_proof": {
      "terms_url": "https://example.com/terms", "terms_version": "2026-01",
      "source_text": "Yes, text me news and offers. Reply STOP to end."
    }
  }"""

_TICKET = """\
{
    "external_id": "PARIS-1:4711", "type": "PURCHASE",
    "occurred_at": "MIDNIGHT",
    "store_id": "PARIS-1", "profile_id": "C-100",
    "currency": "EUR",
    "total_amount_cents": 1990, "total_discount_cents": 0,
    "line_items": [{
      "quantity": 1, "total_price_cents": 1990,
      "product": {"external_id": "SKU-1", "name": "Scarf"}
    }]
  }"""
