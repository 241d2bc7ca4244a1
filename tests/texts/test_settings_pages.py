"""How an organization texts, in the web application: provider, test text, hold, hours, holidays, caps, notices."""

import html
import json
import re

import psycopg
from tests.support import samples
from tests.support.drain_queues import drain_queues
from tests.support.texts import open_at_any_hour
from tests.support.visitor import Visitor

from regulars.texts.public_holidays import coming_holidays
from regulars.web.access import Role

TWILIO = {"provider": "twilio", "account_sid": "AC123", "auth_token": "a token", "sender": "+33700000000"}
SIMULATOR = {"provider": "simulator", "fails": "0", "loses": "0", "delay_ms": "0"}
HOURS = {
    "Monday": "9-18", "Tuesday": "9-18", "Wednesday": "9-18", "Thursday": "9:30-18", "Friday": "9-18",
    "Saturday": "closed", "Sunday": "closed",
}  # fmt: skip


def text_of(visitor: Visitor, path: str) -> str:
    answer = visitor.get(path)
    assert answer.status_code == 200, path
    return html.unescape(answer.text)


def test_a_real_provider_begins_on_hold_and_its_token_is_never_shown(owner):
    saved = owner.post("/settings/texts/provider", **TWILIO, brand="Corvelle", help_contact="help@corvelle.example")
    assert saved.status_code == 303, saved.text
    page = text_of(owner, "/settings/texts")
    assert "Paused" in page
    assert "The provider was changed." in page
    assert "/sms/twilio/org_" in page
    everywhere = page + text_of(owner, "/settings/texts/provider") + owner.get("/settings/audit.csv").text
    assert "a token" not in everywhere
    assert "AC123" in page
    again = owner.post("/settings/texts/provider", **{**TWILIO, "auth_token": "", "sender": "Corvelle"})
    assert again.status_code == 303, "the token that is known stays"


def test_the_page_says_until_when_replies_were_read_and_why_they_are_not(owner, api_database_url):
    assert owner.post("/settings/texts/provider", **TWILIO).status_code == 303
    assert "Replies read until not yet" in " ".join(re.sub("<[^>]*>", " ", text_of(owner, "/settings/texts")).split())
    marks = {
        "account_sid": "AC123",
        "senders": {"+33700000000": {"heard_until": "2026-11-16T10:00:00Z"}},
        "error": "TimeoutError",
        "failing_since": "2026-11-16T10:05:00Z",
    }
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE sms_settings SET inbound = %s::json FROM organization_slugs AS known"
            " WHERE sms_settings.organization_id = known.organization_id AND known.slug = %s",
            (json.dumps(marks), owner.who.slug),
        )
    for path in ("/settings/texts", "/messages"):
        assert "We cannot read the list of replies from Twilio since" in text_of(owner, path), path


def test_a_provider_that_cannot_be_set_is_refused_beside_its_field(owner):
    for fields, words in (
        ({**TWILIO, "account_sid": "SK1"}, "begins with AC"),
        ({**TWILIO, "auth_token": ""}, "needs the token"),
        ({**TWILIO, "sender": ""}, "Fill this in."),
        ({**TWILIO, "sender": "A long name of a sender"}, "at most 11 letters"),
        ({**TWILIO, "parts_per_second": "fast"}, "'fast' is not a number"),
        ({**SIMULATOR, "fails": "60", "loses": "60"}, "add up to at most 100"),
        ({**SIMULATOR, "delay_ms": "60000"}, "A whole number from 0 to 7000."),
        ({"provider": "pigeon"}, "Choose one of the list."),
    ):
        refused = owner.post("/settings/texts/provider", **fields)
        assert refused.status_code == 400
        assert words in html.unescape(refused.text), fields
        assert "a token" not in refused.text


def test_a_test_text_goes_through_the_gate_to_the_simulator(owner, api, tenant, api_database_url):
    open_at_any_hour(api_database_url, tenant.organization_id)
    number = samples.phone()
    consent = {"phone_number": number, "consent_source": "OTHER", "consented_at": samples.ago(days=1)}
    api.post("/v1/subscriptions/opt-in", consent)
    sent = owner.post("/settings/texts/test", number=number, words="It works")
    assert sent.status_code == 303, sent.text
    drain_queues(api_database_url, tenant.organization_id)
    assert "The provider has accepted it." in text_of(owner, "//" + sent.headers["location"].removeprefix("/"))
    assert "It works" in text_of(owner, f"/simulator/{number}")
    assert owner.post("/settings/texts/test", number="12", words="It works").status_code == 400
    assert owner.post("/settings/texts/test", number=number, words="").status_code == 400


def test_texts_are_held_with_a_reason_and_released_with_one(owner, visitor_as):
    marketer = visitor_as(Role.MARKETER)
    assert "until an owner or an admin releases them" in marketer.get("/settings/texts/hold").text
    assert marketer.post("/settings/texts/hold", reason=" ").status_code == 400
    assert marketer.post("/settings/texts/hold", reason="The wrong price").status_code == 303
    for path in ("/settings/texts", "/messages"):
        assert "The wrong price" in text_of(owner, path)
    assert marketer.post("/settings/texts/release", reason="Fixed").status_code == 403
    assert owner.post("/settings/texts/release", reason="").status_code == 400
    assert "The wrong price" in text_of(owner, "/settings/texts/release")
    assert owner.post("/settings/texts/release", reason="The price is right").status_code == 303
    assert "The wrong price" not in text_of(owner, "/settings/texts")
    exported = owner.get("/settings/audit.csv").text
    assert "texts.release" in exported
    assert "The price is right" in exported


def test_hours_are_a_week_that_says_where_it_is_looser_than_the_default(owner):
    page = text_of(owner, "/settings/texts/countries/FR")
    assert "Default hours" in page
    assert "8:00-20:00" in page
    saved = owner.post("/settings/texts/countries/FR/hours", **{**HOURS, "Sunday": "10-12"}, on_holidays="on")
    assert saved.status_code == 303, saved.text
    page = text_of(owner, "/settings/texts/countries/FR")
    assert "9:30-18:00" in page
    assert "Sunday is closed by default in France." in page
    assert "No text is sent on public holidays by default in France." in page
    assert "Your hours" in text_of(owner, "/settings/texts/rules")
    assert owner.post("/settings/texts/countries/FR/default-hours").status_code == 303
    assert "Default hours" in text_of(owner, "/settings/texts/countries/FR")
    refused = owner.post("/settings/texts/countries/FR/hours", **{**HOURS, "Monday": "20-8", "Tuesday": "noon"})
    assert refused.status_code == 400
    assert "2 fields need a change" in refused.text


def test_the_holidays_of_the_next_twelve_months_are_named(owner):
    page = text_of(owner, "/settings/texts/countries/FR")
    table = page.partition('aria-label="Public holidays"')[2].partition("</table>")[0]
    # Easter may be twice in twelve months, or not at all. The first row is the heading.
    assert table.count("<tr>") == 1 + len(coming_holidays("FR", samples.now().date()))
    for day in ("25 Dec", "1 Jan", "14 Jul"):
        assert day in table
    assert "Polynesia" not in page
    assert "Only federal holidays" in text_of(owner, "/settings/texts/countries/US")
    assert owner.get("/settings/texts/countries/ZZ").status_code == 404
    opened = owner.get("/settings/texts/countries", country="IT")
    assert opened.headers["location"].endswith("/settings/texts/countries/IT")
    other = owner.get("/settings/texts/countries", country="pizza")
    assert other.headers["location"].endswith("/settings/texts/rules")


def test_a_country_gets_its_notice_and_loses_it(owner):
    refused = owner.post("/settings/texts/countries/FR/notice", words="STOP 36111", reply_path="")
    assert refused.status_code == 400
    owner.post("/settings/texts/countries/FR/notice", words="STOP 36111", reply_path="36111")
    assert "May be texted" in text_of(owner, "/settings/texts/countries/FR")
    assert "36111" in text_of(owner, "/settings/texts/rules")
    owner.post("/settings/texts/countries/FR/notice", words="", reply_path="")
    assert "Simulated only" in text_of(owner, "/settings/texts/countries/FR")


def test_a_country_gets_its_sender_rate_and_price(owner):
    fields = {"sender": "Corvelle", "parts_per_second": "10", "price": "0.0725", "currency": "EUR"}
    assert owner.post("/settings/texts/countries/FR/sender", **fields).status_code == 303
    page = text_of(owner, "/settings/texts/countries/FR")
    assert "One SMS part costs \u20ac0.0725." in " ".join(page.split())
    for value in ("Corvelle", "10", "0.0725"):
        assert f'value="{value}"' in page
    listed = text_of(owner, "/settings/texts/rules")
    assert "\u20ac0.0725" in listed
    assert "Corvelle" in listed
    assert "texts.sender" in owner.get("/settings/audit.csv").text
    refused = owner.post(
        "/settings/texts/countries/FR/sender",
        sender="+33644640001",
        parts_per_second="-1",
        price="much",
        currency="EUR",
    )
    assert refused.status_code == 400
    assert "3 fields need a change" in refused.text
    assert "France refuses a French mobile number" in refused.text
    assert 'value="much"' in refused.text
    assert owner.post("/settings/texts/countries/US/sender", sender="Corvelle").status_code == 400
    # Empty fields have the default again; what was refused has changed nothing.
    assert "Texts come from <strong>Corvelle</strong>" in text_of(owner, "/settings/texts/countries/FR")
    assert owner.post("/settings/texts/countries/FR/sender").status_code == 303
    assert "no price yet" in text_of(owner, "/settings/texts/countries/FR")


def test_caps_are_changed_and_say_where_they_are_looser(owner):
    page = text_of(owner, "/settings/texts/rules")
    assert 'name="texts_0"' in page
    saved = owner.post("/settings/texts/rules/caps", texts_0="3", hours_0="24", texts_2="9", hours_2="720")
    assert saved.status_code == 303
    assert "The default is at most 1 in 24 hours" in text_of(owner, "/settings/texts/rules")
    refused = owner.post("/settings/texts/rules/caps", texts_0="many", hours_0="0")
    assert refused.status_code == 400
    assert 'id="e-hours_0"' in refused.text


def test_a_role_that_may_only_read_the_rules_gets_no_button_that_saves_them(owner, visitor_as):
    path = "/settings/texts/rules"
    assert "Save frequency caps" in text_of(owner, path)
    for role in (Role.MARKETER, Role.ANALYST, Role.DEVELOPER):
        assert "Save frequency caps" not in text_of(visitor_as(role), path)


def test_the_global_holdout_says_what_a_change_does_to_the_running_quarter(
    owner, visitor_as, api, tenant, api_database_url
):
    path = "/settings/texts/holdout"
    assert "Saving picks the customers now, for the rest of this quarter" in text_of(owner, path)
    for percent in ("100", "21", "-1", "ten", ""):
        refused = owner.post(path, percent=percent)
        assert refused.status_code == 400
        assert "A whole number from 0 to 20." in refused.text
    assert visitor_as(Role.MARKETER).post(path, percent="10").status_code == 403
    assert owner.post(path, percent="10", with_journeys="on").status_code == 303
    drain_queues(api_database_url, tenant.organization_id)
    page = text_of(owner, path)
    assert "The customers who are held out now stay held out until then." in page
    assert "Applies to journeys</dt><dd>yes" in text_of(visitor_as(Role.MARKETER), path)
    assert owner.post(path, percent="0").status_code == 303
    page = text_of(owner, path)
    assert "The holdout of this quarter was ended." in page
    assert "No customer is held out." in page
