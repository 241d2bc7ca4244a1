"""The shell commands that the landing page and the page "First steps" show, with the address of this server: they lead
from an empty server to a first ticket (a sale)."""

from dataclasses import dataclass
from datetime import datetime

from regulars.explore.reference import curl


@dataclass(frozen=True, slots=True)
class FirstStep:
    title: str
    text: str
    command: str


def first_steps(server_url: str, *, today: datetime) -> tuple[FirstStep, ...]:
    return (
        FirstStep(
            "Create an organization and a key",
            "On the machine that runs this server, in the folder of the clone, with the server's own settings."
            " The key is shown only once; this stores it in a variable.",
            '.venv/bin/regulars organization create "My shop"\n'
            'KEY=$(.venv/bin/regulars key create --organization "My shop")',
        ),
        store_step(server_url),
        ticket_step(server_url, today=today),
        FirstStep(
            "Read the ticket",
            "By your own ticket number, URL-encoded, or by the `evt_` id in the response.",
            curl(f"{server_url}/v1/sales-events/PARIS-1%3A4711"),
        ),
        consent_step(server_url, today=today),
        FirstStep(
            "Or import your files",
            "Stores, profiles, sales and consents, as CSV, spreadsheets or NDJSON. Or load two years of sample data.",
            '.venv/bin/regulars import sales tickets.csv --organization "My shop" --dry-run\n.venv/bin/regulars demo',
        ),
    )


def store_step(server_url: str) -> FirstStep:
    return FirstStep(
        "Send a store",
        "Use your own store code. Send the store again to update it.",
        curl(f"{server_url}/v1/stores", body='{"external_id": "PARIS-1", "name": "Rue de Rivoli"}'),
    )


def ticket_step(server_url: str, *, today: datetime) -> FirstStep:
    return FirstStep(
        "Send a ticket",
        "The customer `C-100` is new, so the ticket creates a customer with only an ID. Send it twice: the second"
        " response is 200 with the first sale, and nothing is stored twice.",
        curl(f"{server_url}/v1/sales-events", body=_TICKET.replace("MIDNIGHT", _midnight(today))),
    )


def consent_step(server_url: str, *, today: datetime) -> FirstStep:
    return FirstStep(
        "Record an opt-in",
        "Then this customer may be texted. Send the terms and the wording that they agreed to: that is your proof.",
        curl(f"{server_url}/v1/subscriptions/opt-in", body=_CONSENT.replace("MIDNIGHT", _midnight(today))),
    )


def _midnight(today: datetime) -> str:
    """The last midnight: recent enough to start automations, and the same each time the page is loaded on one day, so
    that sending the command twice sends the same ticket."""
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
