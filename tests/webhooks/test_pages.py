"""Webhooks in the web application: endpoints, secrets, deliveries, replays, the checker and the events."""

import html
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.support import samples
from tests.support.client import new_http
from tests.support.drain_queues import drain_queues
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant
from tests.support.visitor import Visitor, sign_in_now
from tests.support.waiting import wait_until_locked
from tests.webhooks.hooks import LOOPBACK, Hook

from regulars.web import cookies
from regulars.web.access import Role
from regulars.webhooks.model import EVENT_TYPES

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")
DELIVERY = re.compile(r"/webhooks/deliveries/(dlv_\w{26})")


@pytest.fixture(scope="module")
def hook_server(api_database_url) -> Iterator[Server]:
    # A form that waits for a lock waits longer than a test needs to see it.
    with running_server(api_database_url, webhook_allow=LOOPBACK, lock_timeout_ms="60000") as server:
        yield server


@pytest.fixture
def hook() -> Iterator[Hook]:
    opened = Hook()
    yield opened
    opened.close()


class Desk:
    """An organization of its own, an owner, and what happens to its customers."""

    def __init__(self, server: Server, url: str, http) -> None:
        self.server, self.url, self.http = server, url, http
        self.tenant = new_tenant(url)
        self.owner = self.become(Role.OWNER)

    def become(self, role: Role) -> Visitor:
        return Visitor(self.http, self.server.url, sign_in_now(self.url, self.tenant.organization_id, role))

    def create(self, url: str, *events: str) -> tuple[str, str]:
        """The endpoint's id and its secret, as the page after the form shows them."""
        answer = self.owner.post("/webhooks", url=url, description="CRM", events=list(events) or ["profile.*"])
        assert answer.status_code == 303, answer.text
        page = self.follow(answer)
        return answer.headers["location"].rpartition("/")[2], SECRET.findall(page)[0]

    def follow(self, answer) -> str:
        """The page that a form leads to, with the cookie that carries a secret to it."""
        carried = (
            f"{cookies.SESSION_HTTP}={self.owner.who.token}; {cookies.REVEAL}={answer.cookies.get(cookies.REVEAL)}"
        )
        page = self.http.get(f"{self.server.url}{answer.headers['location']}", headers={"Cookie": carried})
        return html.unescape(page.text)

    def happen(self, **fields) -> None:
        body = samples.profile(**fields)
        answer = self.http.post(f"{self.server.url}/v1/profiles", json=body, headers={"x-api-key": self.tenant.key})
        assert answer.status_code == 201, answer.text

    def work(self) -> None:
        drain_queues(self.url, self.tenant.organization_id)

    def deliveries(self, **query: str) -> list[str]:
        found = DELIVERY.findall(self.owner.get("/webhooks/deliveries", **query).text)
        return list(dict.fromkeys(found))

    def sql(self, statement: str, *values) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(statement, (*values, self.tenant.organization_id))


@pytest.fixture
def desk(hook_server, api_database_url) -> Iterator[Desk]:
    with new_http() as http:
        yield Desk(hook_server, api_database_url, http)


def test_a_new_endpoint_shows_its_secret_once_with_a_receiver_to_copy(desk, hook):
    endpoint, secret = desk.create(hook.url)
    page = html.unescape(desk.owner.get(f"/webhooks/{endpoint}").text)
    assert secret not in page
    assert "class Receiver(BaseHTTPRequestHandler)" in page
    assert "node:crypto" in page
    assert "Not used yet" in page
    revealed = desk.follow(desk.owner.post(f"/webhooks/{endpoint}/reveal"))
    assert SECRET.findall(revealed)[0] == secret
    assert "webhook.reveal" in desk.owner.get("/settings/audit.csv").text
    assert secret not in desk.owner.get("/settings/audit.csv").text


def test_an_address_that_cannot_be_dialled_is_refused_beside_its_field(desk):
    for url, words in (
        ("ftp://shop.example", "must start with https"),
        ("https://user:word@shop.example/", "user name or a password"),
        ("https://192.168.1.20/hook", "not on the public internet"),
        ("http://shop.example/" + "a" * 2050, "At most 2048"),
        ("", "Fill this in."),
    ):
        refused = desk.owner.post("/webhooks", url=url, events="profile.*")
        assert refused.status_code == 400
        assert words in html.unescape(refused.text), url
        assert 'id="e-url"' in refused.text
        assert ("REGULARS_WEBHOOK_ALLOW" in refused.text) == ("192.168" in url)


def test_an_endpoint_without_events_or_with_unknown_ones_is_refused(desk, hook):
    assert desk.owner.post("/webhooks", url=hook.url).status_code == 400
    refused = desk.owner.post("/webhooks", url=hook.url, events="sales.*")
    assert refused.status_code == 400
    assert "is no type of event" in refused.text


def test_a_delivery_fails_is_seen_with_its_answer_and_is_replayed(desk, hook):
    endpoint, secret = desk.create(hook.url)
    hook.status, hook.answer = 503, b"<h1>Maintenance</h1>"
    desk.happen(first_name="Odile")
    desk.work()
    [delivery] = desk.deliveries()
    page = html.unescape(desk.owner.get(f"/webhooks/deliveries/{delivery}").text)
    assert "1: 503" in page
    assert "<h1>Maintenance</h1>" in html.unescape(page)
    assert "2 is due" in page
    assert '"first_name": "Odile"' in page
    listed = desk.owner.get("/webhooks").text
    assert "Failing" in listed
    assert "will be disabled on" in " ".join(listed.split())
    assert f"Webhook to {hook.host} fails" in _home(desk)
    hook.status, hook.answer = 204, b""
    again = desk.owner.post(f"/webhooks/deliveries/{delivery}/replay")
    assert again.status_code == 303
    # One that has never answered well gets one delivery at a time.
    for _ in range(3):
        desk.work()
    new = again.headers["location"]
    assert "Delivered in" in desk.owner.get("//" + new.removeprefix("/")).text
    assert len({headers["webhook-id"] for headers, _ in hook.received}) == 1
    assert "Healthy" in desk.owner.get(f"/webhooks/{endpoint}").text
    assert f"Webhook to {hook.host} fails" not in _home(desk)
    assert "whsec_" in secret


def _home(desk) -> str:
    # Home shows figures only where something was sold.
    store = samples.store()
    headers = {"x-api-key": desk.tenant.key}
    desk.http.post(f"{desk.server.url}/v1/stores", json=store, headers=headers)
    return desk.owner.get("/").text


def test_the_navigation_counts_endpoints_that_fail(desk, hook):
    desk.create(hook.url)
    assert '<span class="count">' not in desk.owner.get("/webhooks").text
    hook.status = 500
    desk.happen()
    desk.work()
    assert '<span class="count">1' in desk.owner.get("/webhooks").text


def test_what_failed_since_is_replayed_together(desk, hook):
    endpoint, _ = desk.create(hook.url)
    for n in range(3):
        desk.happen(external_id=f"C-{n}-{desk.tenant.key_id}")
    desk.work()
    desk.sql("UPDATE webhook_deliveries SET state = 'failed' WHERE attempts = %s AND organization_id = %s", 1)
    asked = desk.owner.get(f"/webhooks/{endpoint}/replay").text
    assert "3 deliveries were given up" in asked
    since = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    answer = desk.owner.post(f"/webhooks/{endpoint}/replay", since=since, until="", failed="on")
    assert answer.status_code == 303, answer.text
    assert len(desk.deliveries()) == 6
    again = desk.owner.post(f"/webhooks/{endpoint}/replay", since=since, until="", failed="on")
    assert again.status_code == 303
    assert len(desk.deliveries()) == 6, "what waits is not sent a third time"
    desk.owner.post(f"/webhooks/{endpoint}/replay", since=since, until="")
    assert len(desk.deliveries()) == 9
    assert "webhook.replay_range" in desk.owner.get("/settings/audit.csv").text


def test_a_range_that_is_none_is_refused_or_empty(desk, hook):
    endpoint, _ = desk.create(hook.url)
    for since, until in (
        ("", ""),
        ("pizza", ""),
        ("2026-03-02T09:00", "2026-03-01T09:00"),
        ("0001-01-01T00:00", "9999-12-31T23:59"),
    ):
        answer = desk.owner.post(f"/webhooks/{endpoint}/replay", since=since, until=until)
        assert answer.status_code in {303, 400}, since
    assert desk.deliveries() == []


def test_deliveries_are_filtered_by_endpoint_type_and_state(desk, hook):
    endpoint, _ = desk.create(hook.url)
    other, _ = desk.create(hook.url + "/other", "subscription.*")
    desk.happen()
    desk.work()
    desk.owner.post(f"/webhooks/{other}/ping")
    assert len(desk.deliveries()) == 2
    assert len(desk.deliveries(endpoint=endpoint)) == 1
    assert len(desk.deliveries(type="webhook.ping")) == 1
    assert len(desk.deliveries(state="pending")) == 1
    assert len(desk.deliveries(state="failed", endpoint=endpoint)) == 0
    assert "No delivery matches" in desk.owner.get("/webhooks/deliveries", state="failed").text
    exported = desk.owner.get("/webhooks/deliveries.csv", type="webhook.ping").text.splitlines()
    assert len(exported) == 2


def test_a_ping_arrives_and_a_disabled_endpoint_says_why_it_cannot_be_pinged(desk, hook):
    endpoint, _ = desk.create(hook.url, "subscription.created")
    pinged = desk.owner.post(f"/webhooks/{endpoint}/ping")
    assert pinged.status_code == 303
    desk.work()
    assert json.loads(hook.received[0][1])["data"] == {"webhook": endpoint}
    asked = " ".join(desk.owner.get(f"/webhooks/{endpoint}/disable").text.split())
    assert "0 waiting deliveries are sent then" in asked
    desk.owner.post(f"/webhooks/{endpoint}/disable")
    refused = desk.owner.post(f"/webhooks/{endpoint}/ping")
    assert refused.status_code == 400
    assert "enable it first" in refused.text
    assert "It was disabled by a person." in html.unescape(desk.owner.get(f"/webhooks/{endpoint}").text)
    desk.owner.post(f"/webhooks/{endpoint}/enable")
    assert desk.owner.post(f"/webhooks/{endpoint}/ping").status_code == 303


def test_a_rotation_shows_both_secrets_and_until_when(desk, hook):
    endpoint, first = desk.create(hook.url)
    assert "For 24 hours" in desk.owner.get(f"/webhooks/{endpoint}/rotate").text
    page = desk.follow(desk.owner.post(f"/webhooks/{endpoint}/rotate"))
    new, old = list(dict.fromkeys(SECRET.findall(page)))
    assert (new != first, old) == (True, first)
    assert "It is valid too until" in page
    assert "The previous secret is valid too until" in desk.owner.get(f"/webhooks/{endpoint}").text


def test_an_endpoint_is_changed_and_deleted_by_typing_its_address(desk, hook):
    endpoint, _ = desk.create(hook.url)
    form = desk.owner.get(f"/webhooks/{endpoint}/edit").text
    assert 'value="profile.*" checked' in form
    changed = desk.owner.post(
        f"/webhooks/{endpoint}/edit", url=hook.url + "/2", description="ERP", events=["profile.created", "profile.*"]
    )
    assert changed.status_code == 303
    page = desk.owner.get(f"/webhooks/{endpoint}").text
    assert "ERP" in page
    assert "profile.created" not in page.partition('id="ev"')[2].partition("</section>")[0]
    assert desk.owner.post(f"/webhooks/{endpoint}/delete", host="wrong").status_code == 400
    assert desk.owner.post(f"/webhooks/{endpoint}/delete", host=hook.host + "/2").status_code == 303
    assert desk.owner.get(f"/webhooks/{endpoint}").status_code == 404
    acts = re.findall(r"webhook\.\w+", desk.owner.get("/settings/audit.csv").text)
    assert acts == ["webhook.delete", "webhook.change", "webhook.create"]


def test_a_form_of_an_endpoint_that_another_user_changed_meanwhile_is_refused(desk, hook):
    endpoint, _ = desk.create(hook.url)
    path = f"/webhooks/{endpoint}"

    def etag(page: str) -> str:
        return re.search(r'name="was" value="(\w+)"', desk.owner.get(page).text)[1]

    desk.owner.post(f"{path}/disable")
    enabling, editing = etag(path), etag(f"{path}/edit")
    moved = {"url": hook.url + "/2", "description": "", "events": ["profile.*"]}
    assert desk.owner.post(f"{path}/edit", **moved, was=editing).status_code == 303
    refused = desk.owner.post(f"{path}/edit", **{**moved, "url": hook.url, "description": "ERP"}, was=editing)
    assert (refused.status_code, f"to {hook.url}/2 now" in html.unescape(refused.text)) == (400, True)
    assert 'value="ERP"' in refused.text
    assert desk.owner.post(f"{path}/enable", was=enabling).status_code == 409
    assert "Enable endpoint" in desk.owner.get(path).text
    assert desk.owner.post(f"{path}/enable", was=etag(path)).status_code == 303


@pytest.mark.parametrize("act", ["edit", "enable"])
def test_a_form_that_waits_for_the_change_of_another_user_is_compared_with_that_change(desk, hook, act):
    endpoint, _ = desk.create(hook.url)
    path = f"/webhooks/{endpoint}"
    desk.owner.post(f"{path}/disable")
    shown = re.search(r'name="was" value="(\w+)"', desk.owner.get(path).text)[1]
    moved = hook.url + "/2"
    form = {"url": hook.url, "description": "ERP", "events": ["profile.*"], "was": shown}
    with psycopg.connect(desk.url) as connection, ThreadPoolExecutor(1) as pool:
        connection.execute(
            "UPDATE webhook_endpoints SET url = %s WHERE organization_id = %s", (moved, desk.tenant.organization_id)
        )
        posted = pool.submit(desk.owner.post, f"{path}/{act}", **form)
        wait_until_locked(desk.url, "webhook_endpoints")
        connection.commit()
        assert posted.result().status_code in {400, 409}
    assert f'value="{moved}"' in html.unescape(desk.owner.get(f"{path}/edit").text)
    assert "Enable endpoint" in desk.owner.get(path).text


def test_the_checker_takes_what_was_sent_and_finds_what_was_changed(desk, hook):
    endpoint, secret = desk.create(hook.url)
    desk.happen(first_name="Zoë")
    desk.work()
    sent, body = hook.received[0]
    headers = "\n".join(f"{name}: {sent[name]}" for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    good = desk.owner.post("/webhooks/check", endpoint=endpoint, headers=headers, body=body)
    assert good.status_code == 200
    assert "Genuine" in good.text
    own = desk.owner.post("/webhooks/check", endpoint="own", secret=secret, headers=headers, body=body)
    assert "Genuine" in own.text
    written = desk.owner.post(
        "/webhooks/check", endpoint=endpoint, headers=headers, body=json.dumps(json.loads(body), indent=2)
    )
    assert "The signature fits: no" in written.text
    assert "the JSON were written as it was sent" in written.text
    refused = desk.owner.post("/webhooks/check", endpoint="own", secret="pizza", headers="", body="")
    assert refused.status_code == 400
    assert desk.owner.post("/webhooks/check", endpoint="wh_x", headers="x", body="").status_code == 400


def test_the_request_on_the_page_of_a_delivery_passes_the_checker(desk, hook):
    endpoint, _ = desk.create(hook.url)
    desk.happen()
    desk.work()
    [delivery] = desk.deliveries()
    page = html.unescape(desk.owner.get(f"/webhooks/deliveries/{delivery}").text)
    headers = "\n".join(re.findall(r"^webhook-\w+: .*$", page, re.MULTILINE)[:3])
    checked = desk.owner.post("/webhooks/check", endpoint=endpoint, headers=headers, body=hook.received[0][1])
    assert "Genuine" in checked.text


def test_a_developer_drafts_an_endpoint_and_an_admin_approves_it_with_one_press(desk, hook):
    developer, admin = desk.become(Role.DEVELOPER), desk.become(Role.ADMIN)
    assert "Send for approval" in developer.get("/webhooks/new").text
    drafted = developer.post("/webhooks", url=hook.url, events="profile.*")
    assert drafted.status_code == 303, drafted.text
    assert drafted.cookies.get(cookies.REVEAL), "the developer needs the secret for the receiver"
    endpoint = drafted.headers["location"].rpartition("/")[2]
    desk.happen(first_name="Odile")
    desk.work()
    assert hook.received == [], "nothing is sent to a draft"
    shown = developer.get(f"/webhooks/{endpoint}").text
    assert "waits for an admin" in shown
    assert "Approve" not in shown.partition("<main")[2]
    assert developer.post(f"/webhooks/{endpoint}/enable").status_code == 403
    assert developer.post(f"/webhooks/{endpoint}/ping").status_code == 400
    assert f"Webhook to {hook.host} waits for approval" in _home(desk)
    page = admin.get(f"/webhooks/{endpoint}").text
    assert f"Drafted by {developer.who.email}" in html.unescape(page)
    assert ">Approve" in re.sub(r">\s+", ">", page)
    assert admin.post(f"/webhooks/{endpoint}/enable").status_code == 303
    desk.happen(first_name="Zoë", external_id="C-after-approval")
    desk.work()
    assert [json.loads(body)["data"]["first_name"] for _, body in hook.received] == ["Zoë"]
    assert developer.post(f"/webhooks/{endpoint}/withdraw").status_code == 409
    acts = re.findall(r"webhook\.\w+", desk.owner.get("/settings/audit.csv").text)
    assert acts == ["webhook.approve", "webhook.draft"]
    audit_log = html.unescape(re.sub(r"<[^>]+>|\s+", " ", desk.owner.get("/settings/audit").text))
    assert "drafted the webhook endpoint" in audit_log
    assert "approved the webhook endpoint" in audit_log


def test_a_draft_is_withdrawn_by_its_developer(desk, hook):
    developer = desk.become(Role.DEVELOPER)
    endpoint = developer.post("/webhooks", url=hook.url, events="profile.*").headers["location"].rpartition("/")[2]
    assert developer.post(f"/webhooks/{endpoint}/withdraw").status_code == 303
    assert desk.owner.get(f"/webhooks/{endpoint}").status_code == 404
    assert f"Webhook to {hook.host}" not in _home(desk)


def test_another_organization_sees_nothing_of_it(desk, hook, hook_server, api_database_url):
    endpoint, _ = desk.create(hook.url)
    desk.owner.post(f"/webhooks/{endpoint}/ping")
    [delivery] = desk.deliveries()
    stranger = Desk(hook_server, api_database_url, desk.http).owner
    assert stranger.get(f"/webhooks/{endpoint}").status_code == 404
    assert stranger.get(f"/webhooks/deliveries/{delivery}").status_code == 404
    assert stranger.post(f"/webhooks/deliveries/{delivery}/replay").status_code == 404
    assert stranger.post(f"/webhooks/{endpoint}/rotate").status_code == 404
    assert hook.host not in stranger.get("/webhooks").text
    assert hook.host not in stranger.get("/webhooks/check").text


def test_the_events_are_shown_with_samples(desk):
    page = html.unescape(desk.owner.get("/webhooks/events").text)
    assert page.count('<section class="card"') == len(EVENT_TYPES) + 1
    assert '"type": "subscription.unsubscribed"' in page
