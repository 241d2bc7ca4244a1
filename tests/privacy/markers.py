"""A person with a marker in every column that a room declares personal, and the search for what is left of them."""

import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import sql
from tests.privacy.people import PERSON, TOLERANCE, plant, sale
from tests.privacy.test_declared import columns_of
from tests.support.database_fixtures import SECRET

from regulars.columns import lifecycle
from regulars.columns.feed.build import run_batch
from regulars.consent.chain import hash_number
from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys import drafts
from regulars.journeys.definition import read_definition as read_journey
from regulars.journeys.manage import create_journey
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.kit.ids import PROFILE, new_uuid
from regulars.profiles.facts import ProfilesChanged
from regulars.sales.decode import decode_sale
from regulars.sales.record import record_sales
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment

MARKER = PERSON["attribute"]
# Rows that the flows below do not make, in tables whose rows lead to the person. `%(marker)s` stands in every text.
ROWS = (
    """INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body,
       parts, state, reason, expires_at, provider, provider_id, created_at)
       VALUES (%(o)s, %(text)s, 'person', %(id)s, '1', %(profile)s, %(hash)s, %(number)s, %(marker)s, 1, 'failed',
       %(marker)s, now(), 'twilio', %(marker)s, now())""",
    """INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, number_hash, body, parts, state, expires_at,
       created_at) VALUES (%(o)s, %(id)s, 'stop', %(id)s, '1', %(hash)s, %(marker)s, 1, 'sent', now(), now())""",
    """INSERT INTO simulated_texts (organization_id, id, text_id, phone_number, body, sent_at)
       VALUES (%(o)s, %(id)s, %(text)s, %(number)s, %(marker)s, now())""",
    """INSERT INTO links (organization_id, code, url, origin_kind, origin_id, step, created_at, personal_since, text_id,
       profile_id) VALUES (%(o)s, '1', 'https://a.example', 'person', %(id)s, '1', now(), now(), %(text)s, %(profile)s)""",
    """INSERT INTO clicks (organization_id, id, code, minute, class, traced_at, address, agent)
       VALUES (%(o)s, %(id)s, '1', now(), 'person', now(), %(marker)s, %(marker)s)""",
    """INSERT INTO replies (organization_id, id, provider, provider_id, number_hash, phone_number, profile_id, body,
       meaning, received_at)
       VALUES (%(o)s, %(reply)s, 'twilio', %(marker)s, %(hash)s, %(number)s, %(profile)s, %(marker)s, 'other', now())""",
    """INSERT INTO suppressions (organization_id, number_hash, reply_id, since)
       VALUES (%(o)s, %(hash)s, %(reply)s, now())""",
    """INSERT INTO journey_runs (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id, state, reason,
       entered_at) VALUES (%(o)s, %(run)s, %(journey)s, 1, 'sale', %(marker)s, %(profile)s, 'ended', %(marker)s, now())""",
    """INSERT INTO journey_trace (organization_id, run_id, sequence, at, event, detail)
       VALUES (%(o)s, %(run)s, 1, now(), 'sent', to_json(%(marker)s::text))""",
    """INSERT INTO journey_customers (organization_id, journey_id, profile_id, run_id)
       VALUES (%(o)s, %(journey)s, %(profile)s, %(run)s)""",
    """INSERT INTO journey_holdouts (organization_id, journey_id, step, month, profile_id, passed_at, first_day, percent,
       is_held_out) VALUES (%(o)s, %(journey)s, '1', '2026-10-01', %(profile)s, now(), '2026-10-02', 10, true)""",
    """INSERT INTO holdout_quarters (organization_id, quarter, percent, begins_on)
       VALUES (%(o)s, '2026-10-01', 10, '2026-10-01')""",
    """INSERT INTO holdout_customers (organization_id, quarter, profile_id, is_held_out)
       VALUES (%(o)s, '2026-10-01', %(profile)s, true)""",
    """INSERT INTO journey_backtests (organization_id, journey_id, definition, days, asked_at, asked_by)
       VALUES (%(o)s, %(journey)s, %(definition)s, 1, now(), 'staff')""",
    """INSERT INTO campaigns (organization_id, id, name, state, revision, definition, created_at, updated_at)
       VALUES (%(o)s, %(id)s, 'Sale', 'preparing', 1, '{}', now(), now())""",
    """INSERT INTO campaign_audiences (organization_id, campaign_id, piece, profile_ids)
       VALUES (%(o)s, %(id)s, 1, uuid_send(%(profile)s))""",
    """INSERT INTO campaign_recipients (organization_id, campaign_id, profile_id, open_at, created_at, position, arm,
       outcome) VALUES (%(o)s, %(id)s, %(profile)s, now(), now(), 1, 1, 'waiting')""",
    """INSERT INTO attributed_sales (organization_id, sale_id, profile_id, text_id, touch, touched_at, window_hours,
       sent_at, day, origin_kind, origin_id, step, occurred_at, currency, gross_cents, net_cents, unmatched_cents)
       VALUES (%(o)s, %(id)s, %(profile)s, %(text)s, 'click', now(), 24, now() - interval '70 days', now(), 'campaign',
       %(id)s, '', now(), 'EUR', 1, 1, 0)""",
    """INSERT INTO attribution_customers (organization_id, profile_id, since) VALUES (%(o)s, %(profile)s, now())""",
    """INSERT INTO webhook_endpoints (organization_id, id, url, description, event_types, secret, state, created_at,
       updated_at) VALUES (%(o)s, %(endpoint)s, 'https://a.example', '', '{}', 'x', 'enabled', now(), now())""",
    """INSERT INTO webhook_messages (organization_id, id, type, body, profile_id, created_at)
       VALUES (%(o)s, %(message)s, 'profile.created', %(marker)s, %(profile)s, now())""",
    """INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, message_id, state, created_at)
       VALUES (%(o)s, %(delivery)s, %(endpoint)s, %(message)s, 'failed', now())""",
    """INSERT INTO webhook_attempts (organization_id, delivery_id, number, attempted_at, duration_ms, error, answer)
       VALUES (%(o)s, %(delivery)s, 1, now(), 1, 'It timed out.', %(marker)s)""",
    """INSERT INTO request_log (organization_id, id, api_key_id, answered_at, method, target, status, duration_us,
       request_id, profile_id, problem)
       VALUES (%(o)s, %(id)s, %(id)s, now(), 'GET', %(marker)s, 400, 1, 'r', %(profile)s, to_json(%(marker)s::text))""",
    # A preview, and a count of all keys that is running.
    """INSERT INTO catalog_counts (organization_id, id, catalog, key, walked_to, created_at)
       VALUES (%(o)s, %(count)s, 'attributes', 'hobby', %(id)s, now()),
              (%(o)s, gen_random_uuid(), 'attributes', NULL, %(id)s, now())""",
    """INSERT INTO catalog_tallies (organization_id, count_id, key, readable, unreadable, leading_zeros, samples, common)
       SELECT %(o)s, id, 'hobby', 1, 0, 0, CASE WHEN key IS NULL THEN '[]' ELSE it.pairs END, it.pairs
       FROM catalog_counts CROSS JOIN (SELECT jsonb_build_array(jsonb_build_array(%(marker)s::text, 1)) AS pairs) AS it
       WHERE organization_id = %(o)s ON CONFLICT (organization_id, count_id, key) DO UPDATE
       SET samples = excluded.samples, common = excluded.common""",
    """INSERT INTO outbox_retries (organization_id, id, listener, topic, payload, created_at, attempts)
       SELECT organization_id, id, 'x', topic, payload, created_at, 1 FROM outbox
       WHERE organization_id = %(o)s AND topic = %(topic)s LIMIT 1""",
    """UPDATE sales_events SET payments = %(json)s, loyalty = %(json)s, metadata = %(json)s
       WHERE organization_id = %(o)s AND profile_id = %(profile)s""",
    """UPDATE subscriptions SET terms_url = %(marker)s, terms_version = %(marker)s
       WHERE organization_id = %(o)s""",
    """UPDATE ticket_collision_totals SET note = 'Called ' || %(last_name)s WHERE organization_id = %(o)s""",
)

# A build waits for transactions that were open when it began, also those of tests beside it.
BUILD_S_MAX = 150


@dataclass(frozen=True)
class Planted:
    profile_id: UUID
    traces: tuple[bytes, ...]


async def plant_everywhere(database: Database, organization_id: UUID) -> Planted:
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO organizations (id, name, secret, created_at) VALUES (%s, %s, %s, now())",
            (organization_id, str(organization_id), SECRET),
        )
        for fact in (ProfilesChanged, SubscriptionsChanged):
            await tx.execute("INSERT INTO interests VALUES (%s, %s, 'a test')", (organization_id, fact.topic))
    profile_id = await plant(database, organization_id, PERSON)
    condition = {"type": "attribute", "key": "hobby", "comparison": "any_of", "values": ["other", MARKER]}
    segment = {"name": "S", "match": {"type": "all", "of": [condition]}}
    journey = {"name": "J", "trigger": "purchase", "filter": condition, "steps": [{"do": "wait", "days": 1}]}
    definition = json.dumps(journey).encode()
    async with database.transaction() as tx:
        await create_segment(tx, organization_id, read_segment(json.dumps(segment).encode()))
        made = await create_journey(tx, organization_id, read_journey(definition))
        row = drafts.DraftRow(1, 1, definition.decode(), tx.now, "staff")
        await drafts.upsert_draft(tx, organization_id, made.row.id, row)
        await _collide_anonymously(tx, organization_id)
        names = ("id", "text", "reply", "run", "endpoint", "message", "delivery", "count")
        given: dict[str, Any] = {name: new_uuid() for name in names}
        given |= {
            "o": organization_id,
            "profile": profile_id,
            "journey": made.row.id,
            "marker": MARKER,
            "topic": ProfilesChanged.topic,
            "json": json.dumps({"card": MARKER}),
            "definition": definition.decode(),
            "number": PERSON["number"],
            "last_name": PERSON["last_name"],
            "hash": hash_number(SECRET, PERSON["number"]),
        }
        for statement in ROWS:
            await tx.execute(statement, given)
    await _build_columns(database, organization_id)
    texts = [*PERSON.values(), PROFILE.encode(profile_id), str(profile_id)]
    return Planted(profile_id, (*(text.encode() for text in texts), profile_id.bytes, given["hash"]))


async def _collide_anonymously(tx: Tx, organization_id: UUID) -> None:
    """An anonymous ticket, and the same with a customer's card: as releases before stored it, and as this one does."""
    later = json.loads(sale("S1:anon", PERSON["external_id"], amount=9))
    later["loyalty"] = {"card": PERSON["external_id"], "name": PERSON["first_name"]}
    for ticket in (sale("S1:anon", None), json.dumps(later).encode()):
        await record_sales(tx, organization_id, [decode_sale(ticket)], tolerance=TOLERANCE)
    await tx.execute(
        "INSERT INTO ticket_collisions (organization_id, sales_event_id, content_hash, attempt, first_seen_at,"
        " last_seen_at, times_seen) SELECT %s, id, 'old', %s, now(), now(), 1 FROM sales_events"
        " WHERE organization_id = %s AND external_id = 'S1:anon'",
        (organization_id, json.dumps({**later, "profile_id": None}), organization_id),
    )


async def _build_columns(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        await lifecycle.begin(tx, organization_id)
    deadline = monotonic() + BUILD_S_MAX
    while monotonic() < deadline:
        await run_batch(database, organization_id)
        async with database.reading() as tx:
            if (progress := await lifecycle.find_build_progress(tx, organization_id)) and progress.state == "ready":
                return
    raise AssertionError("the columns were not built")


async def find_traces(database: Database, organization_id: UUID, traces: tuple[bytes, ...]) -> set[str]:
    """The columns in which something of the person stands."""
    found = set()
    for name in sorted(await columns_of(database)):
        table, _, column = name.partition(".")
        async with database.reading() as tx:
            owned = await tx.fetch(
                "SELECT 1 FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s"
                " AND column_name = 'organization_id'",
                (table,),
            )
            query = sql.SQL("SELECT {column} FROM {table}").format(
                column=sql.Identifier(column), table=sql.Identifier(table)
            )
            if owned:
                query += sql.SQL(" WHERE organization_id = %s")
            rows = await tx.fetch(query, (organization_id,) if owned else ())
        if any(trace in text for (value,) in rows for text in _readings(value) for trace in traces):
            found.add(name)
    return found


def _readings(value: Any) -> Iterator[bytes]:
    """A value as it stands; of bytes also what is packed in them."""
    if isinstance(value, bytes | memoryview):
        content = bytes(value)
        yield content
        start = content.find(b"\x78")
        while start != -1:
            with suppress(zlib.error):
                yield zlib.decompressobj().decompress(content[start:])
            start = content.find(b"\x78", start + 1)
    elif isinstance(value, list):
        for one in value:
            yield from _readings(one)
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
        yield text.encode()
