"""A segment that live journeys or scheduled campaigns use is saved only after its effect on them was shown."""

import json
import re

import pytest
from tests.pages.campaign_shop import TEXTED, CampaignShop
from tests.support import samples
from tests.support.journeys import make_journey
from tests.support.visitor import Visitor
from tests.support.waiting import ask_until

from regulars.campaigns import manage
from regulars.conditions.check import ConditionContext, ReferencedSegment
from regulars.conditions.tree import All, Any, InSegment, Named
from regulars.journeys.definition import read_definition
from regulars.journeys.segment_change import find_steps_before
from regulars.segments.pages.save_question import NewVersion, is_confirmed, with_new_version, write_confirmation

OPTED_OUT = {**TEXTED, "r.0~state": "withdrawn"}
NAMED = {**TEXTED, "r.1~kind": "named", "r.1~named": "no"}

EXIT = {"do": "exit"}


def words(page) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


def confirmation(page) -> str:
    return re.search(r'name="confirmed" value="([^"]+)"', page.text)[1]


def save(marketer: Visitor, url: str, **fields: str):
    was = re.search(r'name="was" value="(\w+)"', marketer.get(url).text)[1]
    return marketer.post(f"{url}/save", name="Everybody", was=was, **fields)


def count(marketer: Visitor, url: str) -> None:
    ask_until("</output>", lambda: marketer.get(url))


def test_it_shows_who_would_join_and_leave_and_asks_again_when_that_changes(marketer, shop, api, api_database_url):
    url = f"/segments/{shop.segment}"
    inner = {"r~kind": "all", "r.0~kind": "segment", "r.0~segment": shop.segment}
    through = marketer.post("/segments/save", name="Through", **inner).headers["location"].rpartition("/")[2]
    assert save(marketer, url, **{**TEXTED, "r.0~when_cmp": "in_last_days", "r.0~when_days": "90"}).is_redirect
    steps = ({"do": "wait", "days": 3}, {"do": "branch", "if": {"type": "segment", "id": through}, "then": [EXIT]})
    make_journey(api_database_url, shop.organization_id, *steps, name="Thanks")
    campaign = shop.draft(schedule={"start": "at", "at": samples.ahead(days=2)})
    shop.act(campaign, manage.schedule, confirmed_recipients=3)
    sale = samples.sale(shop.shop.store, profile_id=customer_of(marketer, shop))
    assert api.post("/v1/sales-events", sale).status == 201
    shop.work()
    count(marketer, url)

    asked = save(marketer, url, **OPTED_OUT)
    assert asked.status_code == 200
    assert (
        "0 customers would join the segments that it uses, 3 would leave. For 1 customer in it now its next"
        in words(asked)
    )
    assert "Spring preview Campaign, scheduled 0 customers would join its audience, 3 would leave." in words(asked)
    assert "Version 2, saved" in words(marketer.get(url))
    # What was confirmed about one draft does not count for another.
    other = save(marketer, url, confirmed=confirmation(asked), **NAMED)
    assert "have changed since you were asked" in words(other)
    # Neither do numbers that differ by more than 5 percent.
    one_more(api, shop)
    again = save(marketer, url, confirmed=confirmation(asked), **OPTED_OUT)
    assert "0 customers would join its audience, 4 would leave" in words(again)
    saved = save(marketer, url, confirmed=confirmation(again), **OPTED_OUT)
    assert saved.is_redirect
    assert "Version 3, saved" in words(marketer.get(url))


def one_more(api, shop: CampaignShop) -> None:
    """One more customer who may be texted."""
    consent = {"consent_source": "WEBSITE", "consented_at": samples.ago(minutes=5), "phone_number": samples.phone()}
    customer = shop.shop.customer("Late")
    assert api.post("/v1/subscriptions/opt-in", {**consent, "profile_id": customer}).status == 201
    shop.work()


def customer_of(marketer: Visitor, shop: CampaignShop) -> str:
    """One of the segment's customers."""
    return re.search(r"prof_\w+", ask_until("prof_", lambda: marketer.get(f"/segments/{shop.segment}/members")))[0]


def test_a_new_name_and_a_paused_journey_ask_nothing(marketer, shop, api_database_url):
    url = f"/segments/{shop.segment}"
    branch = {"do": "branch", "if": {"type": "segment", "id": shop.segment}, "then": [EXIT]}
    journey = make_journey(api_database_url, shop.organization_id, branch)
    was = re.search(r'name="was" value="(\w+)"', marketer.get(url).text)[1]
    assert marketer.post(f"{url}/save", name="All", was=was, **TEXTED).is_redirect
    assert save(marketer, url, **OPTED_OUT).status_code == 200
    assert marketer.post(f"/journeys/{journey}/pause").is_redirect
    assert save(marketer, url, **OPTED_OUT).is_redirect


@pytest.mark.parametrize(
    ("shown", "now", "is_near"),
    [
        ((100, 20), (105, 19), True),
        ((100, 20), (106, 20), False),
        ((100, 20), (100, 18), False),
        ((0, 0), (0, 1), False),
        ((None, 0), (None, 0), True),
        ((None, 0), (3, 0), False),
        ((3, 0), (None, 0), False),
        ((3,), (3, 0), False),
    ],
)
def test_numbers_are_confirmed_within_five_percent(shown, now, is_near):
    assert is_confirmed(write_confirmation("draft", shown), "draft", now) is is_near
    assert not is_confirmed(write_confirmation("draft", shown), "another", now)


@pytest.mark.parametrize("sent", ["", "draft", "draft x", "draft -1", "draft " + "9" * 5000, "draft ٣", "draft  1"])
def test_a_confirmation_that_no_page_wrote_confirms_nothing(sent):
    assert not is_confirmed(sent, "draft", (1,))


def test_each_segment_of_a_chain_is_asked_for_once():
    """With 20 references at each of 10 levels, a copy for each reference would be larger than any memory."""
    chain = {
        f"seg_{level}": ReferencedSegment("A", 1, Any(of=(InSegment(id=f"seg_{level - 1}"),) * 20))
        for level in range(1, 10)
    }
    first = ReferencedSegment("A", 1, Any(of=(Named(),)))
    context = ConditionContext(segments={"seg_0": first, **chain, "seg_other": first})
    new = NewVersion("seg_0", All(of=(Named(is_=False),)), frozenset({"seg_0", *chain}))
    segments = with_new_version(context, new).segments
    assert len(segments) == 2 * 10 + 1
    assert segments["seg_0:new"].match == new.match
    assert segments["seg_9:new"].match == Any(of=(InSegment(id="seg_8:new"),) * 20)


def test_the_steps_before_a_branch_are_those_whose_next_branch_it_is():
    asking, other = {"type": "segment", "id": "seg_1"}, {"type": "named"}
    steps = [
        {"id": "wait", "do": "wait", "days": 1},
        {
            "id": "split",
            "do": "split",
            "percent": 50,
            "then": [{"id": "exit", "do": "exit"}],
            "else": [{"id": "else", "do": "wait", "days": 1}],
        },
        {"id": "other", "do": "branch", "if": other, "then": [{"id": "then", "do": "wait", "days": 1}]},
        {"id": "asking", "do": "branch", "if": asking, "then": [{"id": "after", "do": "wait", "days": 1}]},
        {"id": "end", "do": "wait", "days": 1},
    ]
    given = {"name": "A", "trigger": "purchase", "steps": steps}
    definition = read_definition(json.dumps(given).encode())
    assert find_steps_before(definition, frozenset({"seg_1"})) == {"then", "asking"}
    given["steps"] = [step for step in steps if step["id"] != "other"]
    definition = read_definition(json.dumps(given).encode())
    assert find_steps_before(definition, frozenset({"seg_1"})) == {"wait", "split", "else", "asking"}
    assert find_steps_before(definition, frozenset({"seg_2"})) == set()
