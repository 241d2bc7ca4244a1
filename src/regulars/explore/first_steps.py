"""The commands that take a stranger from an empty server to a first ticket, written for this very server."""

from dataclasses import dataclass
from datetime import datetime

from regulars.explore.reference import curl


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    text: str
    command: str


def first_steps(base: str, *, today: datetime) -> tuple[Step, ...]:
    # Midnight has passed, is recent enough to count as fresh, and stays the same when the page is loaded again, so a
    # ticket that is sent twice today is the same ticket.
    midnight = today.strftime("%Y-%m-%dT00:00:00Z")
    return (
        Step(
            "Create an organization and a key",
            "On the machine that runs this server, in the folder of the clone, with the server's own settings."
            " The key is shown this once; here it goes into a variable.",
            '.venv/bin/regulars organization create "My shop"\n'
            'KEY=$(.venv/bin/regulars key create --organization "My shop")',
        ),
        Step(
            "Send a store",
            "Under your own code for it. Sending it again updates it.",
            curl(f"{base}/v1/stores", body='{"external_id": "PARIS-1", "name": "Rue de Rivoli"}'),
        ),
        Step(
            "Send a ticket",
            "The customer `C-100` is new, so the ticket creates a light profile. Send it twice: the second answer is"
            " 200 with the first sale, and nothing was written again.",
            curl(f"{base}/v1/sales-events", body=_TICKET.replace("MIDNIGHT", midnight)),
        ),
        Step(
            "Read it back",
            "By your own ticket number, as one path segment, or by the `evt_` id of the answer.",
            curl(f"{base}/v1/sales-events/PARIS-1%3A4711"),
        ),
    )


_TICKET = """\
{
    "external_id": "PARIS-1:4711", "type": "PURCHASE",
    "occurred_at": "MIDNIGHT",
    "store_id": "PARIS-1", "profile_id": "C-100",
    "currency": "EUR", "total_amount_cents": 1990, "total_discount_cents": 0,
    "line_items": [{
      "quantity": 1, "total_price_cents": 1990,
      "product": {"external_id": "SKU-1", "name": "Scarf"}
    }]
  }"""
