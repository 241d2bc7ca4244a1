"""The password again before what does lasting harm, and the second factor where an organization asks for it."""

import hashlib
import re
from html import unescape

import psycopg
from tests.accounts.browser import Browser
from tests.accounts.people import PASSWORD
from tests.accounts.test_sign_in import code_page, turn_on

from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web.access import Role
from regulars.web.route import Form, Harm

ASKED_BEFORE = {
    "POST /webhooks",
    "POST /webhooks/{endpoint}/edit",
    "POST /webhooks/{endpoint}/enable",
    "POST /webhooks/{endpoint}/replay",
    "POST /settings/server",
    "POST /settings/texts/provider",
    "POST /settings/texts/countries/{country}/sender",
    "GET /settings/audit.csv",
    "GET /tickets.csv",
    "GET /collisions.csv",
    "GET /webhooks/deliveries.csv",
    "GET /analyse/attribution/tickets.csv",
    "GET /consent/numbers/{number}/certificate",
    "GET /consent/numbers/{number}/certificate.json",
    "POST /keys",
    "POST /first-steps/invite",
    "POST /first-steps/key",
    "POST /webhooks/{endpoint}/reveal",
    "POST /webhooks/{endpoint}/rotate",
    "GET /customers.csv",
    "GET /customers/{customer}/export.json",
    "GET /campaigns/{campaign}/proof.jsonl",
    "GET /campaigns/{campaign}/recipients.csv",
    "GET /consent/numbers.csv",
    "GET /messages.csv",
    "GET /segments/{segment}/members.csv",
    "POST /customers/{customer}/erase",
    "POST /settings/team/invite",
    "POST /settings/team/{member}/role",
    "POST /settings/team/{member}/password-link",
}


def change(url, statement, *values):
    with psycopg.connect(url) as connection:
        return connection.execute(statement, values).rowcount


def let_time_pass(url, email):
    """Sixteen minutes ago."""
    change(
        url,
        "UPDATE sessions SET created_at = now() - interval '16 min', confirmed_at = NULL"
        " WHERE user_id = (SELECT id FROM users WHERE email = %s)",
        email,
    )


def count_keys(url, organization_id):
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM api_keys WHERE organization_id = %s", (organization_id,))
        return found.fetchone()[0]


def test_the_password_is_asked_for_before_these():
    table = page_table(Settings(database_url="postgresql://nowhere"))
    assert {f"{page.method} {page.path}" for page in table if page.needs_proof} == ASKED_BEFORE


def test_every_form_and_download_declares_its_harm():
    table = page_table(Settings(database_url="postgresql://nowhere"))
    harmful = [page for page in table if isinstance(page, Form) or "." in page.path.rpartition("/")[2]]
    assert len(harmful) > 120
    assert [f"{page.method} {page.path}" for page in harmful if page.harm is None] == []


def test_what_stops_something_needs_no_proof():
    table = page_table(Settings(database_url="postgresql://nowhere"))
    stopping = {page.path for page in table if isinstance(page, Form) and page.harm is Harm.STOPS}
    assert {"/webhooks/{endpoint}/disable", "/webhooks/{endpoint}/delete", "/settings/texts/hold"} <= stopping
    assert "/keys/{key}/revoke" in stopping


def test_a_webhook_endpoint_waits_for_the_password_and_loses_nothing(browser, staff, api_database_url):
    email = staff.hire(Role.OWNER)
    here = browser.follow(browser.sign_in(email, PASSWORD)).url.path.rstrip("/")
    page = browser.get(f"{here}/webhooks/new")
    let_time_pass(api_database_url, email)
    typed = {
        "url": "https://crm.example/in?a=1&b=2",
        "description": "Räume <b>",
        "events": ["profile.*", "sales_event.recorded"],
    }
    asked = browser.fill(page, f"{here}/webhooks", **typed)
    assert "Confirm your password" in asked.text
    assert asked.text.count('name="events"') == 2
    assert "crm.example" not in browser.get(f"{here}/webhooks").text
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked.text)
    sent_on = {name: [unescape(value) for other, value in hidden if other == name] for name, _ in hidden}
    assert {name: sent_on[name] for name in typed} == {
        name: values if isinstance(values, list) else [values] for name, values in typed.items()
    }
    done = browser.http.post(f"{here}/webhooks", data={**sent_on, "password_again": PASSWORD})
    assert done.status_code == 303, done.text
    let_time_pass(api_database_url, email)
    endpoint = done.headers["location"]
    assert browser.fill(endpoint, f"{endpoint}/disable").status_code == 303, "it stops something"
    assert "Confirm your password" in browser.fill(endpoint, f"{endpoint}/enable").text
    assert "Disabled" in browser.get(endpoint).text


def test_the_account_of_a_provider_waits_for_the_password(browser, staff, api_database_url):
    email = staff.hire(Role.OWNER)
    here = browser.follow(browser.sign_in(email, PASSWORD)).url.path.rstrip("/")
    page = browser.get(f"{here}/settings/texts/provider")
    let_time_pass(api_database_url, email)
    account = {"provider": "twilio", "account_sid": "AC1", "sender": "+33644000000", "auth_token": "secret"}
    asked = browser.fill(page, f"{here}/settings/texts/provider", brand="Shop", **account)
    assert "Confirm your password" in asked.text
    with psycopg.connect(api_database_url) as connection:
        stored = "SELECT count(*) FROM sms_settings WHERE organization_id = %s AND provider = 'twilio'"
        assert connection.execute(stored, (staff.organization_id,)).fetchone() == (0,)


def test_a_form_waits_for_the_password_and_loses_nothing(browser, staff, api_database_url):
    email = staff.hire(Role.OWNER)
    here = browser.follow(browser.sign_in(email, PASSWORD)).url.path.rstrip("/")
    before = count_keys(api_database_url, staff.organization_id)
    page = browser.get(f"{here}/keys/new")
    let_time_pass(api_database_url, email)
    asked = browser.fill(page, f"{here}/keys", name="Lyon & Söhne <b>", permission="ingest")
    assert asked.status_code == 200
    assert "Confirm your password" in asked.text
    wrong = browser.fill(asked, password_again="not it")
    assert wrong.status_code == 400
    assert "Wrong password." in wrong.text
    assert count_keys(api_database_url, staff.organization_id) == before
    done = browser.fill(wrong, password_again=PASSWORD)
    assert done.status_code == 303
    assert "Lyon &amp; Söhne &lt;b&gt;" in browser.follow(done).text
    again = browser.fill(page, f"{here}/keys", name="Second", permission="ingest")
    assert again.status_code == 303, "it is asked once in 15 minutes"
    assert count_keys(api_database_url, staff.organization_id) == before + 2


def test_a_download_waits_for_the_password(browser, staff, api_database_url):
    email = staff.hire(Role.OWNER)
    here = browser.follow(browser.sign_in(email, PASSWORD)).url.path.rstrip("/")
    let_time_pass(api_database_url, email)
    asked = browser.get(f"{here}/customers.csv?sort=name")
    assert "Confirm your password" in asked.text
    assert "customers.export" not in [act for act, *_ in staff.acts()]
    assert browser.fill(asked, "/confirm", password_again="not it").status_code == 400
    done = browser.fill(asked, "/confirm", password_again=PASSWORD)
    assert done.headers["location"] == f"{here}/customers.csv?sort=name"
    assert browser.follow(done).headers["content-type"].startswith("text/csv")
    assert browser.fill("/account", "/confirm", password_again=PASSWORD, next="//evil").headers["location"] == "/"


def test_an_organization_may_ask_owners_and_admins_for_a_second_factor(browser, server, staff):
    email, admin, analyst = staff.hire(Role.OWNER), staff.hire(Role.ADMIN), staff.hire(Role.ANALYST)
    here = browser.follow(browser.sign_in(email, PASSWORD)).url.path.rstrip("/")
    page = browser.get(f"{here}/settings/organization")
    fields = {"time_zone": "Europe/Paris", "locale": "fr-FR", "default_country": "", "requires_second_factor": "on"}
    fields |= {"name": here, "slug": here.rpartition("/")[2]}
    first = browser.fill(page, f"{here}/settings/organization", **fields)
    assert first.status_code == 400
    assert "Turn on your own second factor first" in first.text
    _secret, codes = turn_on(browser)
    assert browser.fill(page, f"{here}/settings/organization", **fields).status_code == 303
    assert browser.get(f"{here}/customers").status_code == 200
    other = Browser(server.url)
    other.sign_in(admin, PASSWORD)
    sent = other.get(f"{here}/customers")
    assert (sent.status_code, sent.headers["location"]) == (303, "/account/second-factor")
    assert "requires a second factor from owners and admins" in other.follow(sent).text
    turn_on(other)
    assert other.get(f"{here}/customers").status_code == 200
    third = Browser(server.url)
    third.sign_in(analyst, PASSWORD)
    assert third.get(f"{here}/customers").status_code == 200
    assert codes


def test_knowing_the_password_buys_no_more_guesses_at_the_code(browser, staff):
    browser.sign_in(staff.hire(Role.OWNER), PASSWORD)
    turn_on(browser)
    page = browser.get("/account/second-factor")

    def guess():
        return browser.fill(page, "/account/second-factor/off", current=PASSWORD, code="000000")

    assert [guess().status_code for _ in range(4)] == [400] * 4
    assert browser.fill("/account", "/confirm", password_again=PASSWORD).status_code == 303
    assert [guess().status_code for _ in range(4)] == [400, 429, 429, 429]
    assert int(guess().headers["retry-after"]) > 600


def test_new_recovery_codes_have_a_salt_and_old_ones_stay_valid(browser, server, staff, api_database_url):
    email = staff.hire(Role.OWNER)
    browser.sign_in(email, PASSWORD)
    _secret, codes = turn_on(browser)
    plain = hashlib.sha256(codes[0].replace("-", "").encode()).digest()
    salted = (
        "UPDATE recovery_codes SET salt = salt WHERE salt IS NOT NULL AND code_hash <> %s"
        " AND user_id = (SELECT id FROM users WHERE email = %s)"
    )
    assert change(api_database_url, salted, plain, email) == 10
    old = hashlib.sha256(b"abcdefghjk").digest()
    change(
        api_database_url,
        "INSERT INTO recovery_codes (user_id, code_hash, created_at) SELECT id, %s, now() FROM users WHERE email = %s",
        old,
        email,
    )
    for code in (codes[4], "abcde-fghjk"):
        other = Browser(server.url)
        assert other.fill(code_page(other, email), "/sign-in/code", code=code).status_code == 303
        again = Browser(server.url)
        assert again.fill(code_page(again, email), "/sign-in/code", code=code).status_code == 400
