"""From an empty server to a STOP, in a browser: the walk of a new user, and the same without a script."""

import re
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from playwright.sync_api import Page, expect
from tests.accounts.browser import Browser
from tests.pages.test_journeys_in_a_browser import write_journey
from tests.support import database, samples
from tests.support.analysis import running_analysis
from tests.support.browser import DESKTOP, WAIT_MS
from tests.support.client import get_url, post_url
from tests.support.drain_queues import drain_queues
from tests.support.open_database import in_transaction
from tests.support.server import Server, running_server
from tests.support.texts import open_at_any_hour
from tests.support.waiting import wait_until_locked

from regulars.accounts.link_use import make_first_owner_link
from regulars.attribution import lift_queue
from regulars.kit.ids import new_uuid
from regulars.kit.settings import Settings
from regulars.web.access import Role

PASSWORD = "four words in a row"
# Without a key there are no webhook endpoints, whose host would have to be looked up.
WITHOUT_WEBHOOKS = Settings()
BUILD_PASSES_MAX = 24
# The page asks again every two seconds.
SHOWN_WITHIN_MS = 2_500
expect.set_options(timeout=WAIT_MS)


def offer(database_url):
    """What `serve` prints."""
    return in_transaction(database_url, make_first_owner_link)


@pytest.fixture
def new_server(shared_database):
    url, template = shared_database
    with database.new_database(url, template=template) as fresh, running_server(fresh) as running:
        yield running, fresh, offer(fresh)


def fill_in(page):
    page.get_by_label("Name of the organization").fill("Maison Corvelle")
    page.get_by_label("Your name").fill("Claire Démo")
    page.get_by_label("Email").fill("claire@corvelle.example")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat password").fill(PASSWORD)
    page.get_by_role("button", name="Create organization").click()


class Walk:
    """One person at one browser, and the server and the worker behind the pages."""

    def __init__(self, tab: Page, server: Server, database_url: str) -> None:
        self.tab, self.server, self.database_url = tab, server, database_url
        self.key = ""

    def url(self, path: str) -> str:
        return f"{self.server.url}/o/maison-corvelle{path}"

    def reads(self, *words: str) -> None:
        """What stands on the page, in whatever part of it."""
        for one in words:
            expect(self.tab.locator("main")).to_contain_text(one)

    def send(self, command: str, *, status: int = 201) -> None:
        """What the curl line does."""
        url = re.search(r"curl -s (\S+)", command)[1]
        body = re.search(r"-d '(.*)'", command, re.DOTALL)[1]
        headers = {"x-api-key": self.key, "content-type": "application/json"}
        assert post_url(url, content=body, headers=headers).status_code == status

    def command(self, path: str) -> str:
        return self.tab.locator("pre", has_text=path).first.inner_text()

    def work(self, slug: str = "maison-corvelle") -> None:
        with psycopg.connect(self.database_url) as connection:
            found = connection.execute("SELECT organization_id FROM organization_slugs WHERE slug = %s", (slug,))
            [organization_id] = found.fetchone()
        for _ in range(2):
            drain_queues(self.database_url, organization_id, WITHOUT_WEBHOOKS)


@pytest.mark.timeout(300)
def test_the_walk_from_a_fresh_server_to_a_stop(chromium, new_server, monkeypatch):
    """Every step as a new user takes it, with what they read."""
    # The demo's campaign has a lift to compute, and the analysis process starts only with the first segment.
    monkeypatch.setattr(lift_queue, "DEADLINE_S", 0.5)
    server, database_url, token = new_server
    context = chromium.new_context(viewport=DESKTOP, locale="fr-FR", timezone_id="Europe/Zurich")
    context.set_default_timeout(WAIT_MS)
    with context:
        walk = Walk(context.new_page(), server, database_url)
        sign_up(walk, token)
        see_a_demo(walk)
        connect_a_till(walk)
        count_a_segment(walk)
        text_and_stop(walk)
        dismiss_first_steps(walk)


def sign_up(walk: Walk, token: str) -> None:
    tab = walk.tab
    tab.goto(f"{walk.server.url}/")
    walk.reads("Set up this server", "printed a link for the first owner on its terminal")
    tab.goto(f"{walk.server.url}/link/{token}")
    # The browser's time zone says more than its language.
    expect(tab.get_by_label("Time zone")).to_have_value("Europe/Zurich")
    expect(tab.get_by_label("Country")).to_have_value("CH")
    # Another country leaves the time zone to the server, unless the browser is in that country.
    tab.get_by_label("Country").select_option("FR")
    expect(tab.get_by_label("Time zone")).to_have_value("")
    tab.get_by_label("Country").select_option("CH")
    expect(tab.get_by_label("Time zone")).to_have_value("Europe/Zurich")
    fill_in(tab)
    walk.reads("Invite your developer", "Look around with the demo", "0 of 4 steps to connect a till are done")
    # Commands are for developers.
    expect(tab.locator("main")).not_to_contain_text("curl")
    assert get_url(f"{walk.server.url}/link/{token}").status_code == 410


def see_a_demo(walk: Walk) -> None:
    tab = walk.tab
    tab.get_by_role("button", name="Start the demo").click()
    walk.reads("Loading sample data into Demo", "Sample data; no real people")
    with psycopg.connect(walk.database_url) as connection:
        connection.execute("UPDATE demo_runs SET tickets = 300")
    walk.work("demo")
    walk.reads("Your demo is ready", "300 tickets from two years are loaded")
    tab.get_by_role("link", name="Look around").click()
    walk.reads("Net sales per day", "Needs attention")
    expect(tab.locator("main")).not_to_contain_text("No ticket in the last 30 days")
    tab.locator("nav summary", has_text="Customers").click()
    tab.get_by_role("link", name="Customers", exact=True).first.click()
    expect(tab.locator("tbody tr").first).not_to_contain_text("No name yet")
    tab.goto(f"{walk.server.url}/o/demo/demo")
    tab.get_by_role("link", name="First steps of Maison Corvelle").click()


def connect_a_till(walk: Walk) -> None:
    tab = walk.tab
    invite_developer(walk)
    tab.get_by_role("link", name="Open the developer’s page").click()
    walk.reads(walk.server.url, "regulars import sales tickets.csv", '--organization "Maison Corvelle"', "--dry-run")
    tab.get_by_role("button", name="Create the first key").click()
    walk.key = tab.locator("#step-key .copy code").inner_text()
    assert walk.key.startswith("rgl_")
    walk.reads("1 of 4 steps", "Shown only once", "Waiting for your first ticket")
    # A refusal appears with its reason without a click: the page refreshes itself.
    walk.send(walk.command("/v1/sales-events"), status=404)
    walk.reads("404 POST /v1/sales-events", "STORE_NOT_FOUND")
    walk.send(walk.command("/v1/stores"))
    walk.send(walk.command("/v1/sales-events"))
    walk.reads("Your first ticket is here", "€19.90 at Rue de Rivoli", "3 of 4 steps", walk.key)
    walk.send(walk.command("/v1/subscriptions/opt-in"))
    walk.reads("4 of 4 steps")
    tab.reload()
    expect(tab.locator("body")).not_to_contain_text(walk.key)
    expect(tab.get_by_role("link", name="Lost it? Create a new key")).to_be_visible()
    tab.get_by_label("Breadcrumb").get_by_role("link", name="First steps").click()
    walk.reads("Your first ticket is here", "What to do next", "Joined Dana")
    tab.get_by_role("link", name="See the ticket").click()
    walk.reads("€19.90 in Rue de Rivoli", "a journey may start. None has started")
    tab.get_by_role("link", name="Consent", exact=True).first.click()
    walk.work()
    expect(tab.get_by_role("link", name=re.compile("^May be texted 1"))).to_be_visible()
    expect(tab.get_by_role("link", name=re.compile("^Weak proofs 0"))).to_be_visible()


def invite_developer(walk: Walk) -> None:
    """The developer accepts in a browser of their own, and finds the page with the commands."""
    tab = walk.tab
    tab.get_by_label("Email of your developer").fill("dana@corvelle.example")
    tab.get_by_role("button", name="Create invitation link").click()
    walk.reads("Send this link to your developer", "Invited dana@corvelle.example")
    link = tab.locator("#invite .copy code").inner_text()
    developer = Browser(walk.server.url)
    path = link.removeprefix(walk.server.url)
    joined = developer.fill(path, path, name="Dana", password=PASSWORD, repeated=PASSWORD)
    assert joined.headers["location"] == "/o/maison-corvelle/first-steps/developer"
    page = developer.get(joined.headers["location"]).text
    assert "Create the first key" in page
    assert f"curl -s {walk.server.url}/v1/stores" in page
    assert developer.get("/o/maison-corvelle/first-steps").headers["location"] == joined.headers["location"]


def count_a_segment(walk: Walk) -> None:
    """The analysis process starts with the first segment: the page waits for it and shows no exception."""
    tab = walk.tab
    tab.goto(walk.url("/segments/new"))
    tab.get_by_role("button", name=re.compile("^(Start counting|Count)$")).first.click()
    expect(tab.locator("#count")).to_contain_text("Your customers are being read")
    # A build waits for older transactions, of other tests too, so that one pass may not be enough.
    for _ in range(BUILD_PASSES_MAX):
        walk.work()
        try:
            expect(tab.locator("#count")).to_contain_text("Counting starts", timeout=SHOWN_WITHIN_MS)
            break
        except AssertionError:
            continue
    expect(tab.locator("#count")).to_contain_text("Counting starts")
    with running_analysis(walk.server):
        expect(tab.locator("#count output")).to_have_text("1")
        expect(tab.locator("#count")).to_contain_text("Of 1 customer in total")
    expect(tab.locator("main")).not_to_contain_text("Error")


def text_and_stop(walk: Walk) -> None:
    tab = walk.tab
    with psycopg.connect(walk.database_url) as connection:
        [organization_id] = connection.execute(
            "SELECT organization_id FROM organization_slugs WHERE slug = 'maison-corvelle'"
        ).fetchone()
    open_at_any_hour(walk.database_url, organization_id)
    headers = {"x-api-key": walk.key}
    profile = {"external_id": "C-100", "first_name": "Odile", "last_name": "Fictive"}
    post_url(f"{walk.server.url}/v1/profiles", json=profile, headers=headers)
    journey = write_journey(tab, walk.url("/journeys"), name="Thank you after a purchase", trigger="purchase")
    tab.get_by_role("link", name="Activate journey…").click()
    tab.get_by_role("button", name=re.compile("^Activate version")).click()
    walk.reads("live since")
    ticket = {
        **samples.sale("PARIS-1"), "external_id": "PARIS-1:4712", "profile_id": "C-100", "occurred_at": samples.ago(minutes=1),
    }  # fmt: skip
    sent = post_url(f"{walk.server.url}/v1/sales-events", json=ticket, headers=headers)
    assert sent.status_code == 201
    walk.work()
    tab.goto(walk.url("/tickets/PARIS-1%3A4712"))
    walk.reads("1 started", "Thank you after a purchase")
    tab.goto(walk.url("/simulator"))
    expect(tab.get_by_role("log")).to_contain_text("Welcome Odile, it's good to have you.")
    tab.get_by_role("button", name="STOP", exact=True).click()
    walk.work()
    # The phone, what the reply did and the list of phones come together, and keep the name.
    did = tab.locator("#followed")
    for words in (
        "entry 2 of this number",
        "Left the journey Thank you after a purchase",
        "Confirmation: sent",
        "Opted out",
    ):
        expect(did).to_contain_text(words)
    expect(tab.get_by_role("log")).to_contain_text("Opted out at")
    expect(tab.locator("#threads li").first).to_contain_text("Odile Fictive")
    tab.goto(f"{journey}/runs")
    expect(tab.get_by_role("cell", name="Opted out")).to_be_visible()
    tab.goto(walk.url("/customers"))
    expect(tab.locator("tbody tr").first).to_contain_text("+33 6 39 98 00 00")
    expect(tab.locator("tbody tr").first).to_contain_text("Opted out")
    tab.get_by_role("link", name="Odile Fictive").click()
    walk.reads("Customer since", "Replied")


def dismiss_first_steps(walk: Walk) -> None:
    """A way back stays until it is dismissed."""
    tab = walk.tab
    tab.get_by_role("link", name="First steps").click()
    tab.get_by_role("button", name="Hide first steps").click()
    expect(tab.get_by_role("heading", name="Home")).to_be_visible()
    expect(tab.get_by_role("link", name="First steps")).to_have_count(0)


def test_it_works_without_javascript_and_a_refused_form_comes_back_whole(chromium, new_server):
    server, database_url, token = new_server
    context = chromium.new_context(viewport=DESKTOP, java_script_enabled=False, locale="fr-BE")
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(f"{server.url}/link/{token}")
    page.get_by_label("Name of the organization").fill("Maison Corvelle")
    page.get_by_label("Your name").fill("Claire Démo")
    page.get_by_label("Email").fill("claire@corvelle.example")
    page.get_by_label("Password", exact=True).fill("password1234")
    page.get_by_label("Repeat password").fill("something else")
    page.get_by_role("button", name="Create organization").click()
    assert page.get_by_role("alert").get_by_role("link", name="easy to guess").is_visible()
    assert page.get_by_label("Your name").input_value() == "Claire Démo"
    assert page.get_by_label("Password", exact=True).input_value() == ""
    # Without a script the languages of the browser say where it is.
    expect(page.get_by_label("Country")).to_have_value("BE")
    expect(page.get_by_label("Time zone")).to_have_value("")
    fill_in(page)
    page.get_by_role("link", name="Open the developer’s page").click()
    page.get_by_role("button", name="Create the first key").click()
    walk = Walk(page, server, database_url)
    walk.key = page.locator("#step-key .copy code").inner_text()
    check_again = page.get_by_role("link", name="check again").get_attribute("href")
    walk.send(walk.command("/v1/stores"))
    walk.send(walk.command("/v1/sales-events"))
    page.goto(f"{server.url}{check_again}")
    assert page.get_by_text("Your first ticket is here").is_visible()
    context.close()


def test_consent_without_a_number_leads_to_the_first_steps(visitor_as, tenant, api_database_url):
    visitor = visitor_as(Role.MARKETER)
    visitor.get("/consent")
    drain_queues(api_database_url, tenant.organization_id, WITHOUT_WEBHOOKS)
    main = visitor.get("/consent").text.split("<main", 1)[1]
    assert "No number may be texted yet" in main
    assert f'href="{visitor.url("/first-steps").removeprefix(visitor.base_url)}"' in main


REFUSED_ZONES = [
    ("FR", "America/New_York", "France does not have this time zone"),
    ("AU", "", "Australia has no single time zone"),
    ("", "", "Choose one, or a country."),
    ("FR", "Mars/Olympus", "Choose one of the list."),
]


def test_the_country_sets_the_time_zone_and_refuses_one_that_it_does_not_have(new_server):
    server, database_url, token = new_server

    def send(country, zone):
        fields = {"organization": "Maison", "name": "Claire", "email": "claire@corvelle.example", "country": country}
        fields |= {"time_zone": zone, "password": PASSWORD, "repeated": PASSWORD}
        return Browser(server.url).fill(f"/link/{token}", f"/link/{token}", **fields)

    for country, zone, reason in REFUSED_ZONES:
        refused = send(country, zone)
        assert (refused.status_code, reason in refused.text) == (400, True), reason
    assert send("FR", "").status_code == 303
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT time_zone FROM organizations").fetchall() == [("Europe/Paris",)]


def test_two_who_ask_for_a_demo_at_once_never_share_one(visitor_as, api_database_url):
    """The other one has the name and has not committed yet: the button waits, and takes the next name."""
    owner = visitor_as(Role.OWNER)
    name, other = free_demo_name(api_database_url), new_uuid()
    with psycopg.connect(api_database_url) as connection, ThreadPoolExecutor(1) as threads:
        connection.execute(
            "INSERT INTO organizations (id, name, secret, created_at) VALUES (%s, %s, %s, now())",
            (other, name, bytes(32)),
        )
        click = threads.submit(owner.post, "/first-steps/demo")
        wait_until_locked(api_database_url, "INSERT INTO organizations")
        connection.commit()
        assert click.result().status_code == 303
    with psycopg.connect(api_database_url) as connection:
        members = connection.execute("SELECT count(*) FROM memberships WHERE organization_id = %s", (other,))
        assert members.fetchone() == (0,)


def free_demo_name(url):
    with psycopg.connect(url) as connection:
        taken = {row[0] for row in connection.execute("SELECT name FROM organizations")}
    return next(name for name in ("Demo", *(f"Demo {number}" for number in range(2, 50))) if name not in taken)
