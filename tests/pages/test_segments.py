"""Segments as pages: without a script, by role, with conflicts, and in the audit log."""

import csv
import io
import re

import httpx
import psycopg
import pytest
from tests.pages.segment_shop import Crowd, ask_until, open_counted, open_shop
from tests.support.visitor import Visitor

from regulars.catalog.model import AttributeType
from regulars.web.access import Role

GOLD = {"r~kind": "all", "r.0~kind": "attribute", "r.0~key": "tier", "r.0~was": "tier", "r.0~cmp": "any_of"}


@pytest.fixture
def marketer(visitor_as) -> Visitor:
    return visitor_as(Role.MARKETER)


@pytest.fixture
def crowd(api, marketer, analysis, api_database_url) -> Crowd:
    return open_shop(api, marketer, api_database_url)


def save(visitor: Visitor, name: str, **fields: str) -> str:
    answer = visitor.post("/segments/save", name=name, **fields)
    assert answer.status_code == 303, answer.text
    return "/segments/" + answer.headers["location"].rpartition("/")[2]


def version_of(page) -> str:
    return re.search(r'name="version" value="([0-9]+)"', page.text)[1]


def test_everything_works_by_sending_the_form(marketer, crowd):
    picked = {**GOLD, "r.0~more_values": "Gold"}
    figure = '<span class="condition-count" id="fig-r-0">3</span>'
    assert ask_until(figure, lambda: marketer.post("/segments/draft", name="Gold", **picked))
    added = marketer.post(
        "/segments/draft", name="Gold", act="add r", **GOLD, **{"r.0~values": "Gold", "r~new": "bought"}
    )
    assert 'name="r.1~low"' in added.text
    incomplete = marketer.post("/segments/draft", name="Gold", act="add r", **GOLD, **{"r.0~values": "Gold"})
    assert "1 condition says too little yet" in incomplete.text
    why = marketer.post("/segments/draft", name="Gold", who=crowd.busy, **GOLD, **{"r.0~values": "Gold"})
    assert "tier is “Gold”" in why.text


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


def test_two_people_who_edit_one_segment_hear_of_each_other(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    again = {**GOLD, "r.0~values": "Platinum", "name": "Mine"}
    assert marketer.post(f"{url}/save", version="1", **again).status_code == 303
    late = marketer.post(f"{url}/save", version="1", **again)
    assert late.status_code == 409
    assert "Version 2 was saved meanwhile" in late.text


def test_an_edit_does_not_hide_that_somebody_else_saved_meanwhile(marketer, crowd):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    opened = version_of(marketer.get(url))
    assert marketer.post(f"{url}/save", name="Theirs", version=opened, **GOLD, **{"r.0~values": "Silver"}).is_redirect
    mine = {**GOLD, "r.0~values": "Platinum", "name": "Mine"}
    edited = marketer.post(f"{url}/draft", act="add r", version=opened, **mine)
    late = marketer.post(f"{url}/save", version=version_of(edited), **mine)
    assert late.status_code == 409
    assert "Version 2 was saved meanwhile; yours began with version 1." in late.text
    # Whoever was told may save over it; whoever sends no version was told of nothing.
    assert marketer.post(f"{url}/save", **mine).status_code == 409
    assert marketer.post(f"{url}/save", version=version_of(late), **mine).is_redirect
    assert "Version 3" in marketer.get(url).text


@pytest.mark.parametrize("role", [Role.MARKETER, Role.ANALYST])
def test_a_page_comes_before_its_figures_which_follow(marketer, crowd, visitor_as, api_database_url, role):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Gold"})
    visitor = visitor_as(role)
    with psycopg.connect(api_database_url) as holding:
        # Nothing can be read for a count while this is held.
        holding.execute("LOCK TABLE segment_runs IN ACCESS EXCLUSIVE MODE")
        page = ask_until("It is being counted. Figures follow.", lambda: visitor.get(url))
    assert 'hx-trigger="load delay:400ms, every 2s"' in page
    assert "Look again" in page
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
    assert "begin with the first page" in page
    assert "Rémi" not in page
    assert "Rémi" in marketer.get(f"{url}/members", after="nonsense").text


def test_an_analyst_sees_counts_and_canonical_ids_and_nothing_else(marketer, crowd, visitor_as):
    url = save(marketer, "Gold", **GOLD, **{"r.0~values": "Platinum"})
    analyst = visitor_as(Role.ANALYST)
    page = open_counted(analyst, url, who=crowd.slow)
    assert "Customers in this segment" in page
    assert ">1</output>" in page
    assert "Platinum" not in page
    assert "Why in or out" not in page
    members = ask_until("prof_", lambda: analyst.get(f"{url}/members"))
    assert "Inès" not in members
    assert analyst.get(f"{url}/members.csv").status_code == 403
    assert analyst.post("/segments/draft", name="x", **GOLD).status_code == 403
    assert visitor_as(Role.DEVELOPER).get("/segments").status_code == 403


def test_a_retyped_key_is_told_in_the_list_on_the_page_and_in_the_catalog(marketer, crowd, visitor_as):
    fields = {"r~kind": "none", "r.0~kind": "attribute", "r.0~key": "points_balance", "r.0~was": "points_balance"}
    url = save(marketer, "Few points", **fields, **{"r.0~cmp": "more", "r.0~value": "5000"})
    assert ">5</output>" in open_counted(marketer, url)
    assert "Segment: Few points" in marketer.get("/attributes/points_balance").text
    assert "Segment: Few points" not in visitor_as(Role.DEVELOPER).get("/attributes/points_balance").text
    crowd.shop.declare("points_balance", AttributeType.TEXT)
    page = open_counted(marketer, url)
    assert ">0</output>" in page
    assert "does not offer more" in page
    assert "Matches nobody" in marketer.get("/segments").text


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
