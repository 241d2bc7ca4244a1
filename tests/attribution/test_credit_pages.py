"""Which text a ticket is credited to, which tickets a text has, and the windows that decide."""

import pytest
from tests.analytics.test_pages import rows_of, text_of
from tests.support import samples
from tests.support.drain_queues import drain_queues
from tests.support.texts import open_at_any_hour, send_order

from regulars.kit.ids import PROFILE, TEXT, new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.request import TextOrder
from regulars.web.access import Role

PATH = "/analyse/attribution/tickets"


@pytest.fixture
def credited(shop):
    """A purchase of 100 EUR two hours after a text by a person, of which 30 EUR came back."""
    number = samples.phone()
    person = samples.unique("C")
    profile = shop.api.post("/v1/profiles", {"external_id": person, "first_name": "Zoé", "phone_number": number})
    consent = {"phone_number": number, "consent_source": "WEBSITE", "consented_at": samples.ago(days=2)}
    assert shop.api.post("/v1/subscriptions/opt-in", {**consent, "profile_id": person}).status < 300
    open_at_any_hour(shop.database_url, shop.organization_id)
    order = TextOrder(
        origin_kind=OriginKind.PERSON,
        origin_id=new_uuid(),
        step="test",
        rendered="The linen is here",
        profile_id=PROFILE.decode(profile.json()["id"]),
    )
    text = send_order(shop.database_url, shop.organization_id, order)
    shop.write("UPDATE texts SET claimed_at = now() - interval '2 hours 6 minutes' WHERE organization_id = %s")
    bought = shop.sell(person, 10_000, samples.ago(minutes=5))
    shop.sell(person, 3_000, samples.ago(minutes=1), type="RETURN")
    drain_queues(shop.database_url, shop.organization_id)
    shop.write("UPDATE attribution_customers SET due_at = now() - interval '1 s' WHERE organization_id = %s")
    drain_queues(shop.database_url, shop.organization_id)
    return TEXT.encode(text), bought


def test_a_ticket_says_which_text_and_why_and_a_text_which_tickets(shop, credited, visitor_as):
    text, ticket = credited
    marketer, analyst = visitor_as(Role.MARKETER), visitor_as(Role.ANALYST)
    words = text_of(marketer.get(f"/tickets/{ticket}").text)
    assert (
        "Attributed to a text The customer bought 2 h after a text. A text without a click counts for 24 hours."
        in words
    )
    assert "Returns since then −€30.00 Net €70.00" in words
    words = text_of(marketer.get(f"/messages/{text}").text)
    assert "2 h after the text €70.00" in words
    found = marketer.get(f"{PATH}", text=text).text
    assert ("Zoé" in found, "Texts written by people" in found) == (True, True)
    assert "Zoé" not in analyst.get(f"{PATH}", text=text).text
    [row] = rows_of(analyst.get(f"{PATH}.csv", origin="person").text)
    assert (row["ticket"], row["net_cents"], row["touch"], row["text_id"]) == (ticket, "7000", "delivery", text)
    assert analyst.get(f"{PATH}", id="nonsense").status_code == 400
    assert analyst.get(f"{PATH}", text="nonsense").status_code == 400
    assert "No attributed purchase matches" in text_of(analyst.get(f"{PATH}", currency="CHF").text)


def test_a_ticket_without_credit_says_why(shop, credited, analyst):
    late = shop.sell(None, 1_000, samples.ago(minutes=1))
    assert "No customer is linked to this ticket" in text_of(analyst.get(f"/tickets/{late}").text)
    back = shop.sell(None, 1_000, samples.ago(minutes=1), type="RETURN")
    assert "A return is attributed to no text." in text_of(analyst.get(f"/tickets/{back}").text)


def test_windows_show_before_and_after_and_are_saved_then(shop, visitor_as):
    owner, analyst = visitor_as(Role.OWNER), visitor_as(Role.ANALYST)
    asked = {"click_days": "3", "delivery_hours": "48", "lift_days": "14"}
    seen = owner.post("/settings/attribution/preview", **asked)
    assert "What the change would do" in text_of(seen.text)
    assert "5 days after a click, 24 hours after a text" in text_of(owner.get("/settings/attribution").text)
    saved = owner.post("/settings/attribution", **asked, version="0")
    assert saved.status_code == 303
    page = text_of(owner.get("/settings/attribution").text)
    assert "3 days after a click, 48 hours after a text, holdout compared over 14 days" in page
    assert owner.post("/settings/attribution", **asked, version="0").status_code == 400
    assert analyst.post("/settings/attribution", **asked, version="1").status_code == 403
    shown = analyst.get("/settings/attribution").text
    assert "Hours after a text 48" in text_of(shown)
    assert "Preview change" not in shown


def test_a_text_whose_figures_are_final_names_the_windows_of_that_time(shop, credited, visitor_as):
    owner, (text, _) = visitor_as(Role.OWNER), credited
    shop.write("DELETE FROM attributed_sales WHERE organization_id = %s")
    owner.post("/settings/attribution", click_days="3", delivery_hours="30", lift_days="7", version="0")
    assert "counts within 30 hours after the text, or 3 days" in text_of(owner.get(f"/messages/{text}").text)
    shop.write("UPDATE texts SET claimed_at = now() - interval '61 days' WHERE organization_id = %s")
    assert "counts within 24 hours after the text, or 5 days" in text_of(owner.get(f"/messages/{text}").text)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("click_days", "0", "A whole number from 1 to 30."),
        ("delivery_hours", "87600", "A whole number from 1 to 168."),
        ("lift_days", "3650", "A whole number from 1 to 30."),
        ("lift_days", "soon", "A whole number from 1 to 30."),
    ],
)
def test_a_window_that_makes_no_sense_is_refused_at_its_field(visitor_as, field, value, words):
    given = {"click_days": "5", "delivery_hours": "24", "lift_days": "7", field: value}
    for path in ("/settings/attribution/preview", "/settings/attribution"):
        answer = visitor_as(Role.OWNER).post(path, **given, version="0")
        assert answer.status_code == 400
        assert words in text_of(answer.text)
        assert f'id="e-{field}"' in answer.text
