"""Sample traffic of the demo: API keys with logged requests and errors, conflicting tickets, and delivery receipts."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.inbox.find import list_texts
from regulars.kit.clock import monotonic
from regulars.kit.db import Database
from regulars.kit.errors import ApiError, invalid
from regulars.kit.ids import new_uuid
from regulars.kit.json import encode
from regulars.kit.metrics import ResponseRecord
from regulars.organizations.manage import create_key, list_keys
from regulars.organizations.model import Permission
from regulars.request_log.recorder import RequestLog
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.stores.model import StoreNotFound
from regulars.texts.model import TextState
from regulars.texts.receipts import apply_receipt
from regulars.texts.settings.store import load_texting

KEYS: Final = (("Tills", Permission.INGEST), ("Loyalty app", Permission.FULL))
REQUESTS_PER_KEY: Final = 20
REQUEST_EVERY_S: Final = 90
# One of this many requests is refused.
REFUSED_EVERY: Final = 6
# How many texts get a delivery receipt.
RECEIPTS_MAX: Final = 200
# Of this many texts, one fails and one has no receipt yet.
FAILED_EVERY: Final = 12
# Twilio's error code for a phone that cannot be reached.
UNREACHABLE_CODE: Final = "30003"
# How much the amount of a ticket differs when it is sent again under the same ticket number.
CHANGED_CENTS: Final = 500
CONFLICTS: Final = 3


@dataclass(frozen=True, slots=True)
class _Caller:
    organization_id: UUID
    api_key_id: UUID


_ACCEPTED_REQUESTS: Final = (
    ("/v1/sales-events", 201),
    ("/v1/sales-events", 201),
    ("/v1/profiles", 200),
    ("/v1/subscriptions/opt-in", 201),
    ("/v1/stores", 200),
)
_REFUSED_REQUESTS: Final[tuple[tuple[str, ApiError], ...]] = (
    ("/v1/sales-events", StoreNotFound("No store has the external_id PAR-OPRA.")),
    ("/v1/sales-events", invalid("line_items[0].quantity", "MINIMUM", "It must be more than 0.")),
    ("/v1/profiles", invalid("phone_number", "FORMAT", "It is no phone number.")),
)


async def log_requests(database: Database, organization_id: UUID, seed: int) -> None:
    """Create API keys and write their recent requests to the request log, unless the organization has keys."""
    async with database.transaction() as tx:
        if await list_keys(tx.connection, organization_id):
            return
        keys = [(await create_key(tx.connection, organization_id, name, permission=right))[0] for name, right in KEYS]
    rng = random.Random(f"{seed}/requests")  # noqa: S311  # sample data, not a secret
    log = RequestLog(database)
    for key in keys:
        for response in _make_responses(rng):
            log.record(_Caller(organization_id, key.id), response)
    await log.write()


def _make_responses(rng: random.Random) -> Iterator[ResponseRecord]:
    """Sample responses in the order of time, up to now."""
    now = monotonic()
    for number in range(REQUESTS_PER_KEY):
        ended = now - (REQUESTS_PER_KEY - number - rng.random()) * REQUEST_EVERY_S
        started, request_id = ended - 0.002 - 0.004 * rng.random(), f"req_{new_uuid().hex}"
        if number % REFUSED_EVERY != REFUSED_EVERY - 1:
            path, status = _ACCEPTED_REQUESTS[number % len(_ACCEPTED_REQUESTS)]
            yield ResponseRecord("POST", path, (), request_id, status, started, ended)
            continue
        path, error = _REFUSED_REQUESTS[number // REFUSED_EVERY % len(_REFUSED_REQUESTS)]
        problem = {
            "title": error.title,
            "status": error.status,
            "detail": error.detail,
            "code": error.code,
            "request_id": request_id,
        }
        yield ResponseRecord("POST", path, (), request_id, error.status, started, ended, encode(problem))


async def record_conflicts(database: Database, organization_id: UUID, sales: Sequence[Sale]) -> None:
    """Record the last of these tickets again with another amount, which the page of conflicting tickets shows."""
    replace = msgspec.structs.replace
    last = sales[-CONFLICTS:]
    changed = [replace(sale, total_amount_cents=sale.total_amount_cents + CHANGED_CENTS) for sale in last]
    async with database.transaction() as tx:
        await record_sales(tx, organization_id, changed, tolerance=timedelta(0))


async def report_deliveries(database: Database, organization_id: UUID) -> None:
    """Record delivery receipts as from an SMS provider: most texts are delivered, some fail, some have no receipt."""
    async with database.transaction() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            return
        sent = await list_texts(tx, organization_id, secret=texting.secret, state="sent", limit=RECEIPTS_MAX)
    for number, text in enumerate(sent):
        if number % FAILED_EVERY == 1:
            continue
        is_failed = number % FAILED_EVERY == FAILED_EVERY - 1
        async with database.transaction() as tx:
            await apply_receipt(
                tx,
                organization_id,
                text.id,
                TextState.FAILED if is_failed else TextState.DELIVERED,
                provider_id=None,
                attempt=str(text.attempts),
                code=UNREACHABLE_CODE if is_failed else None,
                is_stop=False,
                texting=texting,
            )
