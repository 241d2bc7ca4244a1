"""Segments as pages: without a script, by role, with conflicts, and in the audit log."""

import csv
import html
import io
import json
import re

import httpx
import psycopg
import pytest
from tests.pages.segment_shop import Crowd, open_counted
from tests.support import samples
from tests.support.forms import find_forms
from tests.support.journeys import make_campaign
from tests.support.texts import open_at_any_hour
from tests.support.visitor import Visitor
from tests.support.waiting import ask_until

from regulars.catalog.model import AttributeType
from regulars.kit.db import Tx
from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import create_segment
from regulars.web.access import Role

GOLD = {"r~kind": "all", "r.0~kind": "attribute", "r.0~key": "tier", "r.0~was": "tier", "r.0~cmp": "any_of"}


def save(visitor: Visitor, name: str, **fields: str) -> str:
    answer = visitor.post("/segments/save", name=name, **fields)
    assert answer.status_code == 303, answer.text
    return "/segments/" + answer.headers["location"].rpartition("/")[2]


def etag_of(page) -> str:
    return re.search(r'name="was" value="(\w+)"', page.text)[1]


def test_everything_works_by_sending_the_form(marketer, crowd):
    picked = {**GOLD, "r.0~more_values": "Gold"}
    figure = '<span class="condition-count" id="fig-r-0">3</span>'
    assert ask_until(figure, lambda: marketer.post("/segments/draft", name="Gold", **picked))
    added = marketer.post("/segments/draft", name="Gold", act="add r bought", **GOLD, **{"r.0~values": "Gold"})
    assert 'name="r.1~low"' in added.text
    incomplete = marketer.post("/segments/draft", name="Gold", act="add r", **GOLD, **{"r.0~values": "Gold"})
    assert "1 condition is incomplete" in incomplete.text
    why = marketer.post("/segments/draft", name="Gold", who=crowd.busy, **GOLD, **{"r.0~values": "Gold"})
    assert "tier is “Gold”" in why.text


def test_a_rule_about_a_condition_stands_beside_it(marketer, crowd):
    page = marketer.post("/segments/draft", name="x", act="add r texts", **{"r~kind": "all"}).text
    assert "At most 730 days back." in page.partition('id="c-r-0"')[2].partition("adder")[0]
    assert "Texts go back" not in page
    journey = {"r~kind": "all", "r.0~kind": "texts", "r.0~days": "30", "r.0~journey": "jrn_1"}
    assert "At most 365 days back." in marketer.post("/segments/draft", name="x", **journey).text
    spend = marketer.post("/segments/draft", name="x", act="add r spend", **{"r~kind": "all"}).text
    assert "Other currencies do not count." in spend
    blocked = {"r~kind": "all", "r.0~kind": "consent", "r.0~state": "do_not_contact"}
    assert "waits for a decision" in marketer.post("/segments/draft", name="x", **blocked).text


def test_a_campaign_is_chosen_by_its_name(marketer, crowd, tenant, api_database_url):
    assert "Received the campaign" not in marketer.get("/segments/new").text
    campaign = make_campaign(api_database_url, tenant.organization_id, name="Spring")
    added = marketer.post("/segments/draft", name="x", act="add r received_campaign", **{"r~kind": "all"})
    assert "Choose a campaign." in added.text
    chosen = {"r~kind": "all", "r.0~kind": "received_campaign", "r.0~campaign": campaign}
    page = marketer.get(save(marketer, "Springers", **chosen, **{"r.0~is": "no"})).text
    assert ">Spring</option>" in page
    # An archived one stays in the conditions that name it.
    assert marketer.post(f"/campaigns/{campaign}/archive").status_code == 303
    assert (
        "Did not receive the campaign Spring"
        in marketer.post("/segments/draft", name="x", who=crowd.busy, **chosen).text
    )


def test_what_is_wrong_comes_back_whole_and_is_not_saved(marketer, crowd):
    refused = marketer.post("/segments/save", name="Gold", **GOLD)
    assert refused.status_code == 400
    assert "Pick at least one value." in refused.text
    nameless = marketer.post("/segments/save", name="", **GOLD, **{"r.0~values": "Gold"})
    assert nameless.status_code == 400
    assert "A name has 1 to 120 characters." in nameless.text
    assert "No segments yet" in marketer.get("/segments").text
    for odd in ({"r~kind": "fly"}, {"r.0~kind": "named"}, {"r~kind": "all", "r.999999999999~kind": "named"}):
        assert marketer.post("/segments/draft", name="x", **odd).status_code == 200


def test_an_edit_does_not_hide_that_another_user_saved_meanwhile(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    opened = etag_of(marketer.get(url))
    assert marketer.post(f"{url}/save", name="Theirs", was=opened, **GOLD, **{"r.0~values": "Silver"}).is_redirect
    mine = {**GOLD, "r.0~values": "Platinum", "name": "Mine"}
    edited = marketer.post(f"{url}/draft", act="add r", was=opened, **mine)
    late = marketer.post(f"{url}/save", was=etag_of(edited), **mine)
    assert late.status_code == 409
    shown = html.unescape(late.text)
    assert f"{marketer.who.email} changed this at" in shown
    assert "Current value: version 2, “Theirs”" in shown
    # A user who was shown the other version may overwrite it; a form without an etag has shown nothing.
    assert marketer.post(f"{url}/save", **mine).status_code == 409
    assert marketer.post(f"{url}/save", was=etag_of(late), **mine).is_redirect
    assert "Version 3" in marketer.get(url).text


@pytest.mark.parametrize("role", [Role.MARKETER, Role.ANALYST])
def test_a_page_comes_before_its_figures_which_follow(marketer, crowd, visitor_as, api_database_url, role):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    visitor = visitor_as(role)
    with psycopg.connect(api_database_url) as holding:
        # Nothing can be read for a count while this is held.
        holding.execute("LOCK TABLE segment_runs IN ACCESS EXCLUSIVE MODE")
        page = ask_until("It is being counted. The count follows.", lambda: visitor.get(url))
    assert 'hx-trigger="load delay:400ms, every 2s"' in page
    assert "Refresh" in page
    counted = open_counted(visitor, url)
    assert ">3</output>" in counted
    assert "hx-trigger" not in counted.partition('id="count"')[2].partition(">")[0]


def test_members_are_listed_exported_and_the_export_is_in_the_audit_log(marketer, crowd, visitor_as):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    listed = ask_until("Rémi", lambda: marketer.get(f"{url}/members"))
    assert all(name in listed for name in ("Rémi", "Odile", "Nadia"))
    exported = ask_until("first_name", lambda: marketer.get(f"{url}/members.csv"))
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert {row["first_name"] for row in rows} == {"Rémi", "Odile", "Nadia"}
    log = visitor_as(Role.OWNER).get("/settings/audit").text
    assert "segment.export" in log
    assert "segment.create" in log
    # Ids and versions, never what the conditions compare with.
    assert "Platinum" not in log


def test_a_page_of_members_of_customers_who_were_prepared_anew_leads_to_the_first(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    page = marketer.get(f"{url}/members", after="999-1").text
    assert "start from the first page" in page
    assert "Rémi" not in page
    assert "Rémi" in marketer.get(f"{url}/members", after="nonsense").text


def test_an_analyst_sees_counts_and_canonical_ids_and_nothing_else(marketer, crowd, visitor_as):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Platinum"})
    analyst = visitor_as(Role.ANALYST)
    page = open_counted(analyst, url, who=crowd.slow)
    assert "Customers in this segment" in page
    assert ">1</output>" in page
    assert "Platinum" not in page
    assert "Check a customer" not in page
    members = ask_until("prof_", lambda: analyst.get(f"{url}/members"))
    assert "Inès" not in members
    assert analyst.get(f"{url}/members.csv").status_code == 403
    assert analyst.post("/segments/draft", name="x", **GOLD).status_code == 403
    assert visitor_as(Role.DEVELOPER).get("/segments").status_code == 403


def test_a_retyped_key_is_reported_in_the_list_on_the_page_and_in_the_catalog(marketer, crowd, visitor_as):
    fields = {"r~kind": "none", "r.0~kind": "attribute", "r.0~key": "points_balance", "r.0~was": "points_balance"}
    url = save(marketer, "Few points", **fields, **{"r.0~cmp": "more", "r.0~value": "5000"})
    assert ">4</output>" in open_counted(marketer, url)
    assert "Segment: Few points" in marketer.get("/attributes/points_balance").text
    assert "Segment: Few points" not in visitor_as(Role.DEVELOPER).get("/attributes/points_balance").text
    crowd.shop.declare("points_balance", AttributeType.TEXT)
    page = open_counted(marketer, url)
    assert ">0</output>" in page
    assert "does not offer more" in page
    assert "Has no members" in marketer.get("/segments").text


def test_the_list_shows_the_last_count_and_a_deleted_segment_is_gone(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    assert "not counted yet" in marketer.get("/segments").text

    def count_and_look() -> httpx.Response:
        assert marketer.post("/segments/count").status_code == 303
        return marketer.get("/segments")

    ask_until(f'href="/o/{marketer.who.slug}{url}/members">3</a>', count_and_look)
    assert marketer.post(f"{url}/delete").status_code == 303
    assert marketer.get(url).status_code == 404
    assert "No segments yet" in marketer.get("/segments").text


def test_those_to_start_from_can_be_opened_and_saved(marketer, crowd):
    for key in ("lapsed", "best", "unasked", "returned", "birthday", "nonsense"):
        assert marketer.get("/segments/new", **{"from": key}).status_code == 200
    assert marketer.get("/segments/seg_nobody").status_code == 404


def test_a_customer_who_must_not_be_texted_is_not_called_subscribed(marketer, crowd, api, api_database_url):
    def opt(way: str, **more: str) -> None:
        answer = api.post(f"/v1/subscriptions/{way}", more)
        assert answer.status in {200, 201}, answer.body

    suppressed, held = samples.phone(), samples.phone()
    given = {"consent_source": "WEBSITE", "consented_at": samples.ago(minutes=1)}
    opt("opt-in", phone_number=suppressed, profile_id=crowd.slow, **given)
    # A number that is held only because it must not be texted, and that a customer has.
    opt("opt-out", phone_number=held)
    assert api.post("/v1/profiles", {"external_id": crowd.busy, "phone_number": held}).status == 200
    open_at_any_hour(api_database_url, crowd.shop.organization_id)
    assert marketer.post(f"/simulator/{suppressed}/reply", text="Leave me alone").status_code == 303
    crowd.shop.work()
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    counted = open_counted(marketer, url)
    assert re.search(r"Do not contact</dt><dd>2</dd>", counted)
    # The same words mean the same on every page: consent counts the numbers of erased customers under their own name.
    assert "waits for a decision" in counted
    marketer.get("/consent")
    crowd.shop.work()
    consent = marketer.get("/consent").text
    assert ("Of erased customers" in consent, "Do not contact" in consent) == (True, False)
    exported = ask_until("first_name", lambda: marketer.get(f"{url}/members.csv"))
    consents = {row["first_name"]: row["consent"] for row in csv.DictReader(io.StringIO(exported))}
    assert consents == {"Rémi": "DO_NOT_CONTACT", "Odile": "DO_NOT_CONTACT", "Nadia": "NEVER_ASKED"}
    listed = ask_until("Rémi", lambda: marketer.get(f"{url}/members"))
    sampled = (
        ask_until("Some of these customers", lambda: marketer.get(url))
        .partition('id="sample"')[2]
        .partition("</section>")[0]
    )
    for page in (listed, sampled):
        assert page.count("Do not contact") == 2
        assert "May be texted" not in page


def test_a_segment_that_a_file_says_in_other_words_opens_unchanged(marketer, crowd):
    days = {"type": "bought", "count": "days", "at_least": 7, "window": {"last_days": 730}}
    match = {"type": "any", "of": [{"type": "bought"}, {"type": "articles", "at_least": 1234.567}, days]}
    definition = read_definition(json.dumps({"name": "Buyers", "match": match}).encode())
    created = crowd.shop.act(lambda tx: create_segment(tx, crowd.shop.organization_id, definition))
    url = f"/segments/{created.id}"
    page = ask_until("Show all 3</a>", lambda: marketer.get(url))
    assert "Unsaved changes" not in page
    assert 'value="1234.567"' in page
    assert "Purchase days" in page
    assert re.search(r'name="r.2~low"[^>]* value="7"', page)
    # What was counted is its size.
    assert "First count: 3 customers" in marketer.get(url).text
    assert ">3</a>" in marketer.get("/segments").text


def read_stored(crowd: Crowd, *conditions: dict) -> str:
    """The page of a segment that an older release saved with these conditions."""
    definition = read_definition(
        json.dumps({"name": "Old", "match": {"type": "all", "of": [{"type": "named"}]}}).encode()
    )

    async def store(tx: Tx) -> str:
        created = await create_segment(tx, crowd.shop.organization_id, definition)
        old = json.dumps({"name": "Old", "match": {"type": "all", "of": conditions}})
        await tx.execute(
            "UPDATE segment_versions SET definition = %s WHERE organization_id = %s AND segment_id = %s",
            (old, crowd.shop.organization_id, created.row.id),
        )
        return f"/segments/{created.id}"

    return crowd.shop.act(store)


def test_a_stored_empty_value_is_shown_counted_and_refused_when_saved(marketer, crowd):
    crowd.shop.customer("Lou", city="Lyon")
    none_of = {
        "type": "attribute",
        "key": "city",
        "comparison": "none_of",
        "values": ["", "Lyon"],
        "without_value": True,
    }
    crowd.shop.work()
    url = read_stored(crowd, none_of)
    page = ask_until("Show all 5</a>", lambda: marketer.get(url))
    assert "(empty)" in page
    assert "Unsaved changes" not in page
    fields = {"r~kind": "all", "r.0~kind": "attribute", "r.0~key": "city", "r.0~was": "city", "r.0~cmp": "none_of"}
    fields |= {"r.0~values": ["", "Lyon"], "r.0~without": "yes"}
    refused = marketer.post("/segments/save", name="Old", **fields)
    assert refused.status_code == 400
    assert "A value is empty; remove it." in refused.text
    dropped = marketer.post("/segments/draft", name="Old", act="drop r.0 values ", **fields)
    assert "(empty)" not in dropped.text
    assert 'value="Lyon"' in dropped.text


def test_a_stored_segment_with_a_part_that_cannot_be_read_has_no_members_and_is_repaired(marketer, crowd, visitor_as):
    url = read_stored(crowd, {"type": "named"}, {"type": "bought", "at_least": "many"}, {"type": "flies"})
    fault = "nothing', got 'a text'."
    other = save(marketer, "Other", **{"r~kind": "all", "r.0~kind": "segment", "r.0~segment": url.rpartition("/")[2]})
    for page in ("/segments", url):
        assert fault in html.unescape(marketer.get(page).text), page
    assert f"has no members: Expected 'a whole number | a number | {fault}" in html.unescape(marketer.get(other).text)
    ask_until("It is empty until you fix it.", lambda: marketer.get(f"{url}/members"))
    assert "It is empty until it is fixed." in visitor_as(Role.ANALYST).get(url).text
    assert ">not in the segment<" in marketer.get(url, who=crowd.busy).text
    shown = next(form.fields for form in find_forms(marketer.get(url).text) if form.action.endswith("/draft"))
    repaired = marketer.post(f"{url}/save", **{name: value for name, value in shown if name not in {"act", "who"}})
    assert repaired.status_code == 303
    assert "Version 2, saved" in marketer.get(url).text
    assert fault not in html.unescape(marketer.get(url).text)
    ask_until("Show all 3</a>", lambda: marketer.get(url))


def test_a_value_of_a_list_is_one_choice_whatever_its_spelling(marketer, crowd):
    crowd.shop.declare("tier", AttributeType.ENUM, "Gold", "GOLD", "Silver")
    crowd.shop.customer("Lou", tier="gold")
    crowd.shop.work()
    url = read_stored(crowd, {"type": "attribute", "key": "tier", "comparison": "is", "value": "gOLD"})
    page = ask_until("Show all 4</a>", lambda: marketer.get(url))
    assert "Unsaved changes" not in page
    assert re.findall(r'<option value="(gold)"', page, re.IGNORECASE) == ["gOLD"]
    entry = marketer.get("/attributes/tier").text
    assert "“GOLD” is another spelling of “Gold”." in entry


def test_a_stored_date_with_a_time_is_shown(marketer, crowd):
    crowd.shop.customer("Lou", joined="2026-01-01")
    moment = "2026-03-01T09:30:00+01:00"
    url = read_stored(crowd, {"type": "attribute", "key": "joined", "comparison": "before", "value": moment})
    page = marketer.get(url).text
    assert re.search(rf'type="text" value="{re.escape(moment)}"', html.unescape(page))
    assert "Unsaved changes" not in page


def test_the_page_says_how_many_there_were_when_it_was_saved(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    ask_until("Show all 3</a>", lambda: marketer.get(url))
    crowd.shop.customer("Lou", tier="Gold")
    crowd.shop.work()
    assert "First count: 3 customers" in ask_until("Show all 4</a>", lambda: marketer.get(url))


def test_values_that_cannot_be_read_are_counted_and_lead_to_those_who_hold_them(marketer, crowd, visitor_as):
    fields = {"r~kind": "any", "r.0~kind": "named", "r.1~kind": "attribute", "r.1~key": "points_balance"}
    fields |= {"r.1~was": "points_balance", "r.1~cmp": "more", "r.1~value": "100"}
    url = save(marketer, "Points", **fields)
    page = ask_until("1 customer has a value", lambda: marketer.get(url))
    there = re.search(r'href="/o/[^/]+(/segments/[^"]+)">See them</a>', page)[1]
    assert there == f"{url}/members?unreadable=r.1"
    listed = ask_until("Nadia", lambda: marketer.get(there))
    assert "n/a" in listed
    assert all(name not in listed for name in ("Rémi", "Odile", "Silvère", "Inès"))
    # A user who may not see the conditions may not see whose values they cannot read either.
    assert visitor_as(Role.ANALYST).get(there).status_code == 403
    for nowhere in ("r.0", "r.7", "x", "r"):
        assert marketer.get(f"{url}/members", unreadable=nowhere).status_code == 404
    # Before it is saved it has no such place.
    draft = marketer.post("/segments/draft", name="Points", **fields)
    assert "Save it to see them." in ask_until("1 customer has a value", lambda: draft)


def test_the_months_of_the_members_are_drawn(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    page = ask_until("Some of these customers", lambda: marketer.get(url))
    assert "12 months" in page
    assert 'aria-label="Bought in 2 of the last 12 months"' in page
