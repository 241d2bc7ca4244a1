"""Campaigns as pages: without a script, by role, from the draft to the last outcome, and in the audit log."""

import csv
import io
import json
import re

import pytest
from tests.pages.campaign_shop import CampaignShop, open_campaign_shop
from tests.support.visitor import Visitor

from regulars.campaigns import manage
from regulars.web.access import Role


@pytest.fixture
def marketer(visitor_as) -> Visitor:
    return visitor_as(Role.MARKETER)


@pytest.fixture
def shop(api, marketer, analysis, server, api_database_url) -> CampaignShop:
    return open_campaign_shop(api, marketer, server, api_database_url)


def words(page) -> str:
    """A page as it is read."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


def figures(page) -> dict[str, int]:
    """The lines of progress, and the sum below them."""
    progress = page.text.partition('id="pg"')[2].partition("</dl>")[0]
    lines = re.findall(r"<div(?: class=\"(is-\w+)\")?>\s*<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", progress, re.DOTALL)
    plain = [
        (kind, re.sub(r"<[^>]+>", "", label).strip(), re.sub(r"<small.*", "", number, flags=re.DOTALL))
        for kind, label, number in lines
    ]
    return {
        ("Audience" if kind == "is-sum" else label): int(re.sub(r"\D", "", re.sub(r"<[^>]+>", "", number)))
        for kind, label, number in plain
        if kind != "is-sub"
    }


def test_the_empty_list_leads_to_a_first_campaign_and_a_segment_to_its_draft(visitor_as, marketer, shop):
    assert "Write your first campaign" in marketer.get("/campaigns").text
    assert "Write your first campaign" not in visitor_as(Role.ANALYST).get("/campaigns").text
    page = marketer.get("/campaigns/new", segment=shop.segment)
    assert 'value="Everybody"' in page.text
    refused = marketer.post("/campaigns", name="", segment="seg_none")
    assert (refused.status_code, "The campaign was not created." in refused.text) == (400, True)
    made = marketer.post("/campaigns", name="Spring", segment=shop.segment)
    assert made.status_code == 303
    listed = words(marketer.get("/campaigns"))
    assert "Spring" in listed
    assert marketer.who.email in listed


def test_the_page_shows_each_outcome_once_and_they_add_up(marketer, shop):
    path = shop.send(holdout_percent=30)
    shop.work()
    page = marketer.get(path)
    lines = figures(page)
    whole = lines.pop("Audience")
    assert whole == 3 == sum(lines.values())
    assert "hx-trigger" not in page.text.partition('id="campaign"')[2].partition(">")[0]
    for outcome in re.findall(r"/recipients\?outcome=(\w+)", page.text):
        assert marketer.get(f"{path}/recipients", outcome=outcome).status_code == 200
    assert "By variant" in page.text
    assert "France" in page.text


def test_pause_resume_and_cancel_change_the_state_and_stand_in_the_log(visitor_as, marketer, shop):
    path = shop.send()
    assert marketer.post(f"{path}/pause").status_code == 303
    assert "Paused; nothing is sent" not in marketer.get(path).text
    assert "Resume campaign" in marketer.get(f"{path}/resume").text
    assert marketer.post(f"{path}/resume", recipients="3").status_code == 303
    again = marketer.post(f"{path}/resume")
    assert (again.status_code, "Only a paused campaign can be resumed" in again.text) == (409, True)
    assert "Cancel campaign" in marketer.get(f"{path}/cancel").text
    assert marketer.post(f"{path}/cancel").status_code == 303
    assert "Cancelled" in words(marketer.get(path))
    assert marketer.post(f"{path}/archive").status_code == 303
    assert "Spring preview" not in marketer.get("/campaigns").text
    assert "Spring preview" in marketer.get("/campaigns", state="archived").text
    owner = visitor_as(Role.OWNER)
    owner.post("/campaigns/approval", recipients="")
    owner.post(f"{path}/duplicate")
    log = owner.get("/settings/audit").text
    for act in ("approval", "archive", "cancel", "create", "pause", "resume"):
        assert f"campaign.{act}" in log
    assert path in log


def test_an_audience_that_grew_is_a_question_with_the_number_to_confirm(marketer, shop):
    path = shop.send(recipients=1)
    shop.work()
    page = marketer.get(path)
    assert "The audience has 3 recipients and 1 were confirmed." in page.text
    assert marketer.post(f"{path}/resume", recipients="three").status_code == 400
    assert marketer.post(f"{path}/resume", recipients="3").status_code == 303
    shop.work()
    assert figures(marketer.get(path))["Audience"] == 3


def test_a_file_has_every_recipient_and_the_proof_every_text(marketer, visitor_as, shop):
    path = shop.send()
    shop.work()
    rows = list(csv.DictReader(io.StringIO(marketer.get(f"{path}/recipients.csv").text)))
    assert {row["first_name"] for row in rows} == {"Zoé0", "Zoé1", "Zoé2"}
    assert {row["outcome"] for row in rows} <= {"sent", "delivered"}
    proof = marketer.get(f"{path}/proof.jsonl")
    entries = [json.loads(line) for line in proof.text.splitlines()]
    assert {entry["text_id"] for entry in entries} == {row["text_id"] for row in rows}
    assert visitor_as(Role.ANALYST).get(f"{path}/recipients.csv").status_code == 403
    masked = visitor_as(Role.ANALYST).get(f"{path}/recipients").text
    assert "Zoé" not in masked


def test_another_person_approves_what_exceeds_the_rule(visitor_as, marketer, shop):
    owner = visitor_as(Role.OWNER)
    assert marketer.get("/campaigns/approval").status_code == 403
    assert owner.post("/campaigns/approval", recipients="two").status_code == 400
    assert owner.post("/campaigns/approval", recipients="2").status_code == 303
    assert 'value="2"' in owner.get("/campaigns/approval").text
    path = shop.draft()
    assert "Approve" in owner.get(path).text
    assert owner.post(f"{path}/approve").status_code == 303
    assert "campaign.approve" in owner.get("/settings/audit").text
    shop.act(path, manage.schedule, confirmed_recipients=3, is_now=True)


def test_a_draft_says_what_prevents_it_and_can_be_duplicated(marketer, shop):
    path = shop.draft(variants=[{"text": "Hello {{ ticket.total }}"}])
    page = marketer.get(path)
    assert "It cannot be sent yet" in page.text
    assert "Text of variant A: The text uses ticket.total, but a campaign has no ticket." in words(page)
    copied = marketer.post(f"{path}/duplicate")
    assert "Spring preview (copy)" in marketer.get(copied.headers["location"].partition(marketer.who.slug)[2]).text
