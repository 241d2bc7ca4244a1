"""Confirming and approving campaigns on their pages: a button stands for the numbers that its page showed."""

import html
import re

import psycopg
import pytest
from tests.pages.test_campaigns import fields_of, figures, words
from tests.support.waiting import ask_until

from regulars.kit.etag import etag_of
from regulars.web.access import Role


def test_an_audience_that_grew_is_a_question_with_the_number_to_confirm(marketer, shop):
    path = shop.send(recipients=1)
    shop.work()
    page = marketer.get(path)
    assert "The audience has 3 recipients and 1 were confirmed." in page.text
    assert "Confirm 3 recipients" in words(marketer.get(f"{path}/resume"))
    assert marketer.post(f"{path}/resume", **confirmed_of(marketer.get(f"{path}/resume"))).status_code == 303
    shop.work()
    assert figures(marketer.get(path))["Audience"] == 3


def confirmed_of(page) -> dict[str, str]:
    """What the form of a page confirms or approves."""
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'name="(was|recipients|cost)" value="([^"]*)"', page.text)
    }


def test_a_button_confirms_the_numbers_that_its_page_showed(marketer, shop):
    path = shop.send(recipients=1)
    shop.work()
    opened = confirmed_of(marketer.get(f"{path}/resume"))
    counted_again = (
        """UPDATE campaigns SET question = '{"recipients": 19, "cost": {"EUR": "0.95"}}' WHERE organization_id = %s"""
    )
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        connection.execute(counted_again, (shop.organization_id,))
    for sent, confirmed in ((opened, "3 recipients"), ({"is_confirmed": "on"}, "no numbers")):
        refused = marketer.post(f"{path}/resume", **sent)
        assert refused.status_code == 409
        sentence = f"You confirmed {confirmed}. The campaign has 19 recipients for about €0.95 now."
        assert sentence in words(refused)
        assert "Nothing was confirmed." in words(refused)
        assert "Paused" in words(marketer.get(path))
    assert confirmed_of(refused) == {**opened, "recipients": "19", "cost": '{"EUR":"0.95"}'}
    for cost in ('{"EUR":"sNaN"}', '{"EUR":"1E+999999999"}', '{"EUR":"-0.95"}', '{"XYZ":"0.95"}', "much"):
        assert marketer.post(f"{path}/resume", recipients="19", cost=cost).status_code == 409
    assert marketer.post(f"{path}/resume", **confirmed_of(refused)).status_code == 303
    late = marketer.post(f"{path}/pause") and marketer.post(f"{path}/resume", **opened)
    assert (late.status_code, "The campaign asks nothing now." in words(late)) == (409, True)


@pytest.mark.parametrize("cost", ['{"EUR":"NaN"}', '{"EUR":"-1"}', '{"EUR":"1e999999"}', '{"XYZ":"1"}', "[]"])
@pytest.mark.parametrize("limit", ["", "99.50"])
def test_a_cost_that_is_no_amount_is_refused(visitor_as, marketer, shop, cost, limit):
    assert visitor_as(Role.OWNER).post("/campaigns/approval", cost_0=limit, currency_0="EUR").status_code == 303
    path = shop.draft()
    refused = marketer.post(f"{path}/send", was=etag_of(1), recipients="3", cost=cost)
    assert (refused.status_code, "changed this campaign" in refused.text) == (409, False)
    assert "Draft" in words(marketer.get(path))


def test_another_person_approves_what_exceeds_the_rule(visitor_as, marketer, shop):
    owner = visitor_as(Role.OWNER)
    assert marketer.get("/campaigns/approval").status_code == 403
    assert owner.post("/campaigns/approval", recipients="two").status_code == 400
    assert owner.post("/campaigns/approval", cost_0="1", currency_0="Euro").status_code == 400
    assert owner.post("/campaigns/approval", cost_0="1", currency_0="QQQ").status_code == 400
    limits = {"recipients": "2", "cost_0": "99.50", "currency_0": "eur"}
    assert owner.post("/campaigns/approval", **limits).status_code == 303
    assert 'value="99.50"' in owner.get("/campaigns/approval").text
    assert 'value="2"' in owner.get("/campaigns/approval").text
    path = shop.draft()
    refused = ask_until("They can approve it", lambda: marketer.get(f"{path}/send"))
    assert "Send 3 texts" not in refused
    assert "Review and approve" in owner.get(path).text
    page = owner.get(f"{path}/approve")
    assert "Your approval covers up to 3 recipients at an unknown cost." in words(page)
    assert re.search(r"<h1[^>]*>\s*Approve “Spring preview”", page.text)
    shown = confirmed_of(page)
    assert owner.post(f"{path}/approve", **{**shown, "was": "old"}).status_code == 409
    assert "Review and approve" in owner.get(path).text
    assert owner.post(f"{path}/approve", **shown).status_code == 303
    assert f"{owner.who.email} approved up to 3 recipients at an unknown cost." in words(owner.get(path))
    assert "campaign.approve" in owner.get("/settings/audit").text
    assert "Send 3 texts now" in words(marketer.get(f"{path}/send"))
    changed = {**fields_of(marketer.get(f"{path}/edit")), "margin": "100"}
    assert marketer.post(f"{path}/edit", **changed).status_code == 303
    page = words(marketer.get(path))
    assert f"changed after {owner.who.email} approved it" in page
    assert "Another person than those who changed the campaign" in page
    assert "Review and approve" not in page
    own = marketer.get(f"{path}/approve")
    assert confirmed_of(own) == {}
    assert marketer.post(f"{path}/approve", **shown).status_code == 409
    assert "Your approval covers up to 6 recipients at an unknown cost." in words(owner.get(f"{path}/approve"))


def test_a_question_above_the_limit_is_answered_by_another_person(visitor_as, marketer, shop):
    owner = visitor_as(Role.OWNER)
    path = shop.send(recipients=1)
    assert owner.post("/campaigns/approval", recipients="2").status_code == 303
    shop.work()
    asked = words(owner.get(f"{path}/resume"))
    assert "If you confirm, you approve up to 3 recipients at an unknown cost." in asked
    opened = confirmed_of(owner.get(f"{path}/resume"))
    # Who changed it gets no button, and no way around it.
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        writer = "UPDATE campaigns SET changed_by = %s WHERE organization_id = %s"
        connection.execute(writer, ([marketer.who.email], shop.organization_id))
    assert "Confirm 3 recipients" not in words(marketer.get(f"{path}/resume"))
    assert marketer.post(f"{path}/resume", **opened).status_code == 409
    assert owner.post(f"{path}/resume", **opened).status_code == 303
    shop.work()
    assert figures(marketer.get(path))["Audience"] == 3


def test_a_limit_that_is_newer_than_the_start_is_approved_by_resuming(visitor_as, marketer, shop):
    owner = visitor_as(Role.OWNER)
    path = shop.send(texts_per_hour=1)
    shop.work()
    assert marketer.post(f"{path}/pause").status_code == 303
    assert owner.post("/campaigns/approval", recipients="2").status_code == 303
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        writer = "UPDATE campaigns SET changed_by = %s WHERE organization_id = %s"
        connection.execute(writer, ([marketer.who.email], shop.organization_id))
    own = words(marketer.get(f"{path}/resume"))
    assert ("Another person than those who changed" in own, "you approve" in own) == (True, False)
    assert marketer.post(f"{path}/resume").status_code == 409
    assert "If you resume, you approve up to 3 recipients at an unknown cost." in words(owner.get(f"{path}/resume"))
    assert owner.post(f"{path}/resume").status_code == 303
    assert "Sending" in words(owner.get(path))


def test_a_country_without_a_price_needs_an_approval_under_a_cost_limit(visitor_as, marketer, shop):
    owner = visitor_as(Role.OWNER)
    assert owner.post("/campaigns/approval", cost_0="99.50", currency_0="EUR").status_code == 303
    path = shop.draft()
    page = words(marketer.get(f"{path}/send"))
    assert "The cost is not known in full, because no price is set for France." in page
    assert "An unknown cost needs the approval of another person." in page
    assert "Send 3 texts now" not in page
    shown = confirmed_of(owner.get(f"{path}/approve"))
    assert shown["cost"] == ""
    assert marketer.post(f"{path}/send", **{**shown, "was": etag_of(1)}).status_code == 409
    assert "Your approval covers up to 3 recipients at an unknown cost." in words(owner.get(f"{path}/approve"))
    assert owner.post(f"{path}/approve", **shown).status_code == 303
    assert "Send 3 texts now" in words(marketer.get(f"{path}/send"))
    assert owner.post("/settings/texts/countries/FR/sender", price="1", currency="EUR").status_code == 303
    assert re.search(r"Your approval covers up to 3 recipients, €\d\.\d\d\.", words(owner.get(f"{path}/approve")))


def test_an_answer_to_a_page_of_before_a_segment_changed_is_refused(visitor_as, marketer, shop):
    owner = visitor_as(Role.OWNER)
    path = shop.send(recipients=1)
    assert owner.post("/campaigns/approval", recipients="2").status_code == 303
    shop.work()
    opened = confirmed_of(owner.get(f"{path}/resume"))
    change_segments(shop)
    refused = owner.post(f"{path}/resume", **opened)
    assert (refused.status_code, "something that it uses, was changed" in words(refused)) == (409, True)
    assert "Paused" in words(owner.get(path))
    # A page that is opened now shows numbers of before the change, so its answer approves nothing.
    page = owner.get(f"{path}/resume")
    assert "The segments changed after the question" in words(page)
    assert "Confirm 3 recipients" not in words(page)
    assert owner.post(f"{path}/resume", **confirmed_of(page)).status_code == 409


def change_segments(shop):
    """Save each segment again as a new version."""
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO segment_versions (organization_id, segment_id, version, definition, created_at, created_by)
            SELECT organization_id, segment_id, version + 1, definition, now(), 'zoe@shop.example' FROM segment_versions
            WHERE organization_id = %s
            """,
            (shop.organization_id,),
        )
        connection.execute(
            "UPDATE segments SET version = version + 1 WHERE organization_id = %s", (shop.organization_id,)
        )
