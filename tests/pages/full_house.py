"""An organization with something in every field that is stored and shown, all of it hostile."""

import time
from dataclasses import dataclass
from uuid import UUID

import psycopg
from tests.support import samples
from tests.support.client import Api
from tests.support.drain_queues import drain, drain_queues
from tests.support.journeys import change_draft, make_journey
from tests.support.open_database import in_transaction, open_database
from tests.support.texts import open_at_any_hour, send_text
from tests.support.visitor import Visitor, sign_in_now
from tests.support.waiting import wait_until

from regulars.campaigns.approval_rule import ApprovalRule, save_rule
from regulars.campaigns.definition import Definition
from regulars.campaigns.manage import create_campaign
from regulars.experiments.arms import Variant
from regulars.kit.db import Database, Tx
from regulars.texts.settings.model import Simulation
from regulars.web.access import Role
from regulars.worker import LISTENERS

# Would run, break out of an attribute, out of a script, out of a template or out of a title.
MARKER = "planted"
# Its last word is longer than any column.
PLANTED = "\"'><img src=x onerror=alert('planted')></title></script>{{7*7}}" + "Wordiness" * 5
# Stands in every field that tells of a customer, and in no other.
PRIVATE_MARKER = "confidential"
PRIVATE = f"{PLANTED} {PRIVATE_MARKER}"
WRITTEN_SECONDS_MAX = 90


@dataclass(frozen=True)
class FullHouse:
    organization_id: UUID
    number: str
    customer: str
    external_id: str


def fill(api: Api, visitor: Visitor, database_url: str) -> FullHouse:
    assert api.tenant is not None
    number = samples.phone()
    store = _send(api, "/v1/stores", samples.store(external_id=f"S {PLANTED}", name=PLANTED, address=_address()))
    profile = _send(
        api,
        "/v1/profiles",
        {
            "external_id": f"C {PRIVATE}",
            "first_name": PRIVATE,
            "last_name": PRIVATE,
            "phone_number": number,
            "attributes": {PLANTED: PRIVATE, "size": "12", "code": "007", "id": PRIVATE, "type": PRIVATE},
        },
    )
    _send(
        api, "/v1/profiles", {"external_id": f"D {PRIVATE}", "phone_number": PRIVATE, "attributes": {"size": PRIVATE}}
    )
    _write_journeys(database_url, api.tenant.organization_id)
    consent = {
        "phone_number": number,
        "consent_source": "WEBSITE",
        "consented_at": samples.ago(days=2),
        "profile_id": profile["id"],
        "consent_proof": {
            "terms_url": f"https://shop.example/?'><img/src=x>{PRIVATE_MARKER}",
            "terms_version": PRIVATE,
            "source_text": PRIVATE,
        },
    }
    _send(api, "/v1/subscriptions/opt-in", consent)
    other = {**consent, "phone_number": samples.phone(), "profile_id": None}
    _send(api, "/v1/subscriptions/opt-in", other)
    withdrawal = {"phone_number": other["phone_number"], "reason": PRIVATE, "source": PRIVATE}
    _send(api, "/v1/subscriptions/opt-out", withdrawal)
    _sell(api, store["id"], profile["external_id"])
    api.post("/v1/sales-events", {"external_id": f"T {PLANTED}", "store_id": PLANTED})
    api.post("/v1/profiles", {"external_id": "wrong", "attributes": {PRIVATE: ["no text"]}})
    _name_the_organization(database_url, api)
    visitor.post("/keys", name=PLANTED[:80], permission="ingest")
    wait_until(lambda: "No requests yet" not in visitor.get("/requests").text, every_s=0.05)
    drain_queues(database_url, api.tenant.organization_id)
    segment = _describe_segments(visitor)
    drain_queues(database_url, api.tenant.organization_id)
    visitor.post("/attributes/count")
    visitor.post("/products/count")
    visitor.post("/attributes/size/preview", type="enum", values=f"12\n{PLANTED}")
    drain_queues(database_url, api.tenant.organization_id)
    _text(api, visitor, database_url, number)
    _hook(api, visitor, database_url)
    deadline = time.monotonic() + WRITTEN_SECONDS_MAX
    while not _is_counted(visitor, segment):
        assert time.monotonic() < deadline
        drain_queues(database_url, api.tenant.organization_id)
    _write_campaigns(database_url, api.tenant.organization_id, segment)
    _plant_by_hand(database_url, api.tenant.organization_id, number)
    return FullHouse(api.tenant.organization_id, number, profile["id"], profile["external_id"])


# What a provider, a listener or a person writes only when something goes wrong. The number stands in it, too.
BY_HAND = (
    """UPDATE texts SET state = 'failed', reason = 'rejected: ' || %(private)s, provider_id = %(private)s,
       profile_id = (SELECT profile_id FROM subscriptions WHERE organization_id = %(o)s AND phone_number = %(number)s)
       WHERE organization_id = %(o)s AND state IN ('delivered', 'sent')""",
    "UPDATE replies SET provider_id = %(private)s WHERE organization_id = %(o)s",
    """UPDATE journey_runs SET reason = %(private)s, state = 'parked', due_at = NULL
       WHERE organization_id = %(o)s""",
    """INSERT INTO journey_trace (organization_id, run_id, sequence, at, event, detail)
       SELECT organization_id, id, 99, now(), 'failed', json_build_object('attempts', 1, 'error', %(private)s::text)
       FROM journey_runs WHERE organization_id = %(o)s""",
    """UPDATE campaigns SET state = 'paused', resumes_to = 'sending', frozen_at = now(), recipients = 1,
       reason = %(planted)s, confirmed_by = %(planted)s, not_after = now() + interval '1 day'
       WHERE organization_id = %(o)s AND name LIKE 'Paused%%'""",
    """INSERT INTO campaign_recipients (organization_id, campaign_id, profile_id, open_at, created_at, position, arm, outcome)
       SELECT %(o)s, c.id, s.profile_id, now(), now(), 1, 1, 'waiting' FROM campaigns AS c, subscriptions AS s
       WHERE c.organization_id = %(o)s AND c.frozen_at IS NOT NULL AND s.organization_id = %(o)s
         AND s.phone_number = %(number)s""",
    """INSERT INTO campaign_totals (organization_id, campaign_id, arm, outcome, reason, country, recipients, parts)
       SELECT %(o)s, id, 1, 'waiting', '', 'FR', 1, 0 FROM campaigns
       WHERE organization_id = %(o)s AND frozen_at IS NOT NULL""",
    """INSERT INTO links (organization_id, code, url, origin_kind, origin_id, step, created_at, personal_since, profile_id)
       SELECT %(o)s, 'c1icked0', 'https://shop.example/sale', 'person', gen_random_uuid(), '', now(), now(), profile_id
       FROM subscriptions WHERE organization_id = %(o)s AND phone_number = %(number)s""",
    """INSERT INTO clicks (organization_id, id, code, minute, class, traced_at, address, agent)
       VALUES (%(o)s, gen_random_uuid(), 'c1icked0', now(), 'person', now(), %(private)s, %(private)s)""",
    "UPDATE ticket_collision_totals SET note = %(private)s WHERE organization_id = %(o)s",
    """UPDATE catalog_tallies SET samples = jsonb_build_array(jsonb_build_array(%(private)s::text, 1)),
       common = jsonb_build_array(jsonb_build_array(%(private)s::text, 1)) WHERE organization_id = %(o)s""",
)


def _plant_by_hand(database_url: str, organization_id: UUID, number: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        for statement in BY_HAND:
            connection.execute(
                statement,
                {"o": organization_id, "number": number, "private": f"{number} {PRIVATE}", "planted": PLANTED},
            )


def _write_journeys(database_url: str, organization_id: UUID) -> None:
    """One that the opt-in below enters and waits in, and a draft that cannot run."""
    text = {"do": "send_text", "text": PLANTED.replace("{{7*7}}", "")}
    asked = {"type": "attribute", "key": PLANTED, "comparison": "is", "value": PLANTED}
    wait = {"do": "wait", "days": 1}
    exits = [{"do": "set_attribute", "key": PLANTED, "value": PLANTED}, {"do": "exit"}]
    branch = {"do": "branch", "if": asked, "then": [text, wait], "else": exits}
    store = {"type": "store", "any_of": [PLANTED]}
    make_journey(database_url, organization_id, text, is_live=False, name=f"Draft {PLANTED}", filter=store)
    # The newest is the one that a person who looks around opens first.
    made = make_journey(database_url, organization_id, branch, trigger="opt_in", name=PLANTED, created_by=PLANTED)
    change_draft(database_url, organization_id, made, by=PLANTED)


def _write_campaigns(database_url: str, organization_id: UUID, segment: str) -> None:
    """A draft that another person has to approve, and one that is planted as paused: a crawl of the pages opens both."""
    text = PLANTED.replace("{{7*7}}", "")

    async def act(tx: Tx) -> None:
        await save_rule(tx, organization_id, ApprovalRule(recipients_max=0))
        for name in (f"Paused {PLANTED}"[:120], f"Draft {PLANTED}"[:120]):
            definition = Definition(name=name, include=(segment,), variants=(Variant(text=text),))
            await create_campaign(tx, organization_id, definition, created_by=PLANTED)

    in_transaction(database_url, act)


def _text(api: Api, visitor: Visitor, database_url: str, number: str) -> None:
    """A text that arrived, one whose delivery is unknown, and a reply that waits.

    The unknown one is the newest: a crawl of the pages opens it, also where a journey's has come before it. By day
    that one leaves at once, and would count against a cap.
    """
    organization_id = api.tenant.organization_id
    for loses in (0.0, 1.0):
        open_at_any_hour(database_url, organization_id, brand=PLANTED, caps=(), simulation=Simulation(loses=loses))
        send_text(database_url, organization_id, number, PRIVATE)
    open_at_any_hour(database_url, organization_id, brand=PLANTED, caps=())
    visitor.post(f"/simulator/{number}/reply", text=f"Leave me alone {PRIVATE}")
    drain_queues(database_url, organization_id)


def _hook(api: Api, visitor: Visitor, database_url: str) -> None:
    """An endpoint whose delivery failed; nothing is dialled for it."""
    answer = visitor.post(
        "/webhooks",
        url="https://shop.example/?'><img/src=x>",
        description=PLANTED,
        events=["profile.*", "subscription.*"],
    )
    assert answer.status_code == 303, answer.text
    who = sign_in_now(database_url, api.tenant.organization_id, Role.DEVELOPER)
    drafted = Visitor(visitor.http, visitor.base_url, who).post(
        "/webhooks", url="https://draft.example/" + "long" * 60, description=PLANTED, events="profile.*"
    )
    assert drafted.status_code == 303, drafted.text
    _send(
        api,
        "/v1/profiles",
        {
            "external_id": f"H {PRIVATE}",
            "first_name": PRIVATE,
            "attributes": {PLANTED: PRIVATE, "id": PRIVATE, "type": PRIVATE, "status": PRIVATE, "outcome": PRIVATE},
        },
    )

    async def fail(database: Database) -> None:
        await drain(database, api.tenant.organization_id, LISTENERS)
        async with database.transaction() as tx:
            of = (api.tenant.organization_id,)
            await tx.execute(
                "UPDATE webhook_deliveries SET attempts = 1, attempted_at = now(), duration_ms = 9,"
                " answer_status = 503 WHERE organization_id = %s",
                of,
            )
            await tx.execute(
                "INSERT INTO webhook_attempts (organization_id, delivery_id, number, attempted_at, duration_ms,"
                " status, error, answer) SELECT organization_id, id, 1, now(), 9, 503, %s, %s"
                " FROM webhook_deliveries WHERE organization_id = %s",
                (PLANTED, PRIVATE, *of),
            )
            await tx.execute(
                "UPDATE webhook_endpoints SET failures = 1, failing_since = now() WHERE organization_id = %s", of
            )

    with open_database(database_url) as opened:
        opened.run(fail)


def _describe_segments(visitor: Visitor) -> str:
    """One with something planted in every field, whose id it gives, and one that asks for it."""
    leaves = {
        "r~kind": "any",
        "r.0~kind": "attribute", "r.0~key": PLANTED, "r.0~was": PLANTED, "r.0~cmp": "is", "r.0~value": PLANTED,
        "r.1~kind": "bought", "r.1~low": "1", "r.1~days": "30", "r.1~products": PLANTED, "r.1~stores": f"S {PLANTED}",
        "r.1~pkey": PLANTED, "r.1~pwas": PLANTED, "r.1~pcmp": "contains", "r.1~pvalue": PLANTED,
        "r.2~kind": "attribute", "r.2~key": "size", "r.2~was": "size", "r.2~cmp": "at_least", "r.2~value": "1",
    }  # fmt: skip
    saved = visitor.post("/segments/save", name=PLANTED, **leaves)
    assert saved.status_code == 303, saved.text
    identifier = saved.headers["location"].rpartition("/")[2]
    asking = {"r~kind": "all", "r.0~kind": "segment", "r.0~segment": identifier}
    assert visitor.post("/segments/save", name=f"Asks {PLANTED}"[:120], **asking).status_code == 303
    return identifier


def _address() -> dict[str, str]:
    return samples.address(
        address_line1=PLANTED,
        address_line2=PLANTED,
        postal_code=PLANTED[:20],
        locality=PLANTED,
        administrative_area1=PLANTED,
        administrative_area2=PLANTED,
    )


def _sell(api: Api, store_id: str, customer: str) -> None:
    line = samples.line(
        external_id=PLANTED,
        unit=PLANTED[:32],
        product={"external_id": PLANTED, "name": PLANTED, "properties": {PLANTED: PLANTED, "size": "XL"}},
    )
    sale = samples.sale(
        store_id,
        external_id=f"T {PLANTED}",
        profile_id=customer,
        source=PLANTED,
        payments=[{"kind": PRIVATE}],
        loyalty={"card": PRIVATE},
        metadata={PLANTED: PRIVATE},
        line_items=[line],
    )
    _send(api, "/v1/sales-events", sale)
    _send(api, "/v1/sales-events", {**sale, "external_id": f"R {PLANTED}", "type": "RETURN"})
    # The same ticket with another content is a collision.
    _send(api, "/v1/sales-events", {**sale, "source": f"{PLANTED} again", "total_amount_cents": 1})


def _send(api: Api, path: str, body: object) -> dict:
    answer = api.post(path, body)
    assert answer.status in {200, 201}, answer.body
    shown: dict = answer.json()
    return shown


def _name_the_organization(database_url: str, api: Api) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE organizations SET name = %s WHERE id = %s",
            (f"{PLANTED} {api.tenant.organization_id}", api.tenant.organization_id),
        )


def _is_counted(visitor: Visitor, segment: str) -> bool:
    """A page comes before its figures, and with them come links; customers that others still write are read later."""
    return f"{segment}/members" in visitor.get(f"/segments/{segment}").text
