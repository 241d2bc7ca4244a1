"""Drafts beyond what can be saved are refused before they are stored or drawn, in every builder."""

import html

from tests.pages.test_journey_builder import WAIT, Builder, blank
from tests.support.journeys import make_journey

__all__ = ["blank"]


def test_a_draft_grows_no_larger_than_a_journey_may_be(marketer, tenant, api_database_url):
    """Nothing beyond the limits is stored, so no page is ever drawn of it; what is too large already can shrink."""
    full = make_journey(api_database_url, tenant.organization_id, *[WAIT] * 100, is_live=False, name="Full")
    desk = Builder(marketer, full)
    refused = desk.send("add", place="1", kind="wait", days="2", **desk.opened(add="1", kind="wait"))
    assert refused.status_code == 413
    assert "at most 100 steps" in refused.text
    assert len(desk.names()) == 100
    assert desk.tool("remove", "1").status_code == 303
    fifty_one = {"r~kind": "all", **{f"r.{number}~kind": "named" for number in range(51)}}
    refused = desk.send("condition", of="filter", keep="1", **desk.opened(filter="1"), **fifty_one)
    assert refused.status_code == 413
    assert "50 conditions" in refused.text


def test_a_text_without_end_is_not_measured(blank):
    opened = blank.opened(add="1", kind="send_text")
    answer = blank.send("measure", place="1", is_new="1", text="ł" * 3_000, **opened)
    assert answer.status_code == 200
    assert "At most 2000 characters; this has 3000." in html.unescape(answer.text)
    assert blank.send("measure", place="1", is_new="1", text="ł" * 200_000, **opened).status_code == 413


def test_a_draft_larger_than_any_segment_is_refused_before_it_is_drawn(marketer):
    """2,900 groups held the server for twelve seconds; a tree that could be saved is always drawn."""
    largest = {"r~kind": "all"}
    for number in range(50):
        place = f"r.{number}"
        for _ in range(4):
            largest[f"{place}~kind"] = "any"
            place = f"{place}.0"
        largest[f"{place}~kind"] = "consent"
    drawn = marketer.post("/segments/draft", **largest)
    assert drawn.status_code == 200
    assert 'name="r.49.0.0.0.0~kind"' in drawn.text
    too_many = {"r~kind": "all", **{f"r.{number}~kind": "any" for number in range(2_900)}}
    for path in ("/segments/draft", "/segments/save"):
        refused = marketer.post(path, name="Many", **too_many)
        assert refused.status_code == 413
        assert "at most 50 conditions" in refused.text
    at_the_edge = {"r~kind": "all", **{f"r.{number}~kind": "any" for number in range(250)}}
    assert "r.250~kind" not in marketer.post("/segments/draft", act="group r", **at_the_edge).text
