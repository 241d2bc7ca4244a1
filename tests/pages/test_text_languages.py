"""A text in several languages in the editor of a journey: counted, priced, saved, and shown in the versions."""

import html
import re

import psycopg
from tests.pages.test_journey_builder import blank
from tests.support import samples
from tests.support.drain_queues import drain_queues

from regulars.web.access import Role

__all__ = ["blank"]


def test_a_text_has_several_languages_each_with_its_parts_and_cost(api, visitor_as, blank, tenant, api_database_url):
    customer = samples.profile(first_name="Odile", attributes={"language": "fr"})
    api.post("/v1/profiles", customer)
    drain_queues(api_database_url, tenant.organization_id)
    visitor_as(Role.OWNER).post("/settings/texts/countries/CH/sender", price="0.05", currency="CHF")
    fields = {"text": "Hello", "by": "language", "value_0": "fr", "text_0": "Bonjour " + "à tous " * 30}
    form = {"place": "1", "kind": "send_text", "is_new": "1", "was": "x"}
    counted = " ".join(html.unescape(blank.send("measure", **form, **fields).text).split())
    assert "<strong>Default text</strong>: 1 SMS part; one text costs CHF 0.05 in Switzerland" in counted
    assert "<strong>French</strong>: 2 SMS parts; one text costs CHF 0.10 in Switzerland" in counted
    assert 'name="value_1"' in counted
    # A link is as long as the short one, whatever its destination.
    linked = f'See {{{{ link("https://shop.example/{"a" * 300}") }}}}'
    assert "<strong>1 SMS part</strong>" in blank.send("measure", **form, text=linked).text
    inserted = blank.send("measure", **form, **fields, insert="text_0", field="{{ brand }}")
    assert "{{ brand }}</textarea>" in html.unescape(inserted.text)
    refused = blank.send("add", **{**form, **blank.opened(add="1", kind="send_text")}, **{**fields, "by": ""})
    assert refused.status_code == 400
    assert "Choose the attribute" in refused.text
    blank.add("1", "wait", days="1")
    assert blank.save().status_code == 303
    blank.add("1", "send_text", **fields, personal_links="on")
    assert "other texts for French; each customer gets links of their own" in blank.page()
    assert 'value="fr"' in blank.page(step="1")
    assert blank.save().status_code == 303
    versions = html.unescape(blank.visitor.get(f"/journeys/{blank.journey}/versions").text)
    assert "<ins>Send a text: All other customers: “Hello”; French: “Bonjour" in versions


def test_a_marketer_verifies_a_number_and_sends_a_test_from_the_editor(blank, tenant, api_database_url):
    visitor, number = blank.visitor, samples.phone()
    form = {"place": "1", "kind": "send_text", "is_new": "1", "was": "x", "text": "Hello {{ profile.first_name }}"}
    assert "Verify your number" in blank.send("measure", **form).text
    assert "Verify your own number first" in blank.send("test", **form).text
    assert visitor.post("/settings/texts/number", number="12").status_code == 400
    assert visitor.post("/settings/texts/number", number=number).status_code == 303
    drain_queues(api_database_url, tenant.organization_id)
    phone = html.unescape(visitor.get(f"/simulator/{number}").text)
    code = re.search(r"(\d{6}) is your code", phone)[1]
    assert code not in visitor.get("/messages").text
    assert visitor.post("/settings/texts/number/code", code="wrong").status_code == 400
    assert visitor.post("/settings/texts/number/code", code=code).status_code == 303
    assert "Verified" in visitor.get("/settings/texts/number").text
    assert "The test text is on its way" in blank.send("test", **form, by="tier", value_0="gold", text_0="Dear").text
    assert (
        "The test text is on its way"
        in blank.send("test", **form, by="tier", value_0="gold", text_0="Dear", test_language="gold").text
    )
    assert "The text is empty" in blank.send("test", **{**form, "text": ""}).text
    drain_queues(api_database_url, tenant.organization_id)
    phone = html.unescape(visitor.get(f"/simulator/{number}").text)
    assert "Hello " in phone
    assert "Dear" in phone
    assert "Test text" in html.unescape(visitor.get("/messages").text)
    with psycopg.connect(api_database_url) as connection:
        query = "SELECT act FROM audit_log WHERE organization_id = %s"
        acts = {act for (act,) in connection.execute(query, (tenant.organization_id,))}
    assert {"text.test_code", "text.test_number"} <= acts


def test_an_analyst_verifies_no_number(visitor_as):
    assert visitor_as(Role.ANALYST).get("/settings/texts/number").status_code == 403
