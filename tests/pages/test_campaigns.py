"""Campaigns as pages: without a script, by role, from the draft to the last outcome, and in the audit log."""

import csv
import html
import io
import json
import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.support import samples
from tests.support.waiting import ask_until

from regulars.kit.ids import CAMPAIGN, new_uuid
from regulars.web import csrf
from regulars.web.access import Role


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
    assert "Create your first campaign" in marketer.get("/campaigns").text
    assert "Create your first campaign" not in visitor_as(Role.ANALYST).get("/campaigns").text
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
    path = shop.send()
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


def test_replies_beyond_those_that_are_counted_are_said_plainly(marketer, shop):
    path = shop.send()
    shop.work()
    reply = (
        "INSERT INTO replies (organization_id, id, provider, provider_id, number_hash, phone_number, body, meaning,"
        " decided, received_at) SELECT organization_id, reply, 'test', reply, {}, phone_number, 'x', 'other', 'nothing',"
        " now() FROM (SELECT * FROM texts WHERE organization_id = %s ORDER BY id LIMIT 1) AS t, unnest(%s::uuid[]) AS reply"
    )
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        given = [new_uuid() for _ in range(2_000)]
        connection.execute(reply.format("number_hash"), (shop.organization_id, given))
        assert "<dd>2,000</dd>" in marketer.get(path).text
        # From a number that got no text of the campaign.
        connection.execute(reply.format("'x'"), (shop.organization_id, [new_uuid()]))
    page = marketer.get(path).text
    assert "<dd>1,999+</dd>" in page
    assert "We counted the newest 2,000 replies; there are more." in page


def test_pause_resume_and_cancel_change_the_state_and_stand_in_the_log(visitor_as, marketer, shop):
    path = shop.send()
    assert marketer.post(f"{path}/pause").status_code == 303
    assert "Paused; nothing is sent" not in marketer.get(path).text
    assert "Resume campaign" in marketer.get(f"{path}/resume").text
    shown = re.search(r'name="was" value="([^"]+)"', marketer.get(f"{path}/resume").text)
    assert marketer.post(f"{path}/resume", was=shown[1]).status_code == 303
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


def test_a_file_has_every_recipient_and_the_proof_every_text(marketer, visitor_as, shop):
    path = shop.send()
    shop.work()
    rows = list(csv.DictReader(io.StringIO(marketer.get(f"{path}/recipients.csv").text)))
    assert {row["first_name"] for row in rows} == {"Zoé0", "Zoé1", "Zoé2"}
    assert {row["outcome"] for row in rows} <= {"sent", "delivered"}
    followed = marketer.post(f"{path}/follow-up").headers["location"].partition(marketer.who.slug)[2]
    assert fields_of(marketer.get(followed))["name"] == "Spring preview: follow-up"
    proof = marketer.get(f"{path}/proof.jsonl")
    entries = [json.loads(line) for line in proof.text.splitlines()]
    assert {entry["text_id"] for entry in entries} == {row["text_id"] for row in rows}
    assert visitor_as(Role.ANALYST).get(f"{path}/recipients.csv").status_code == 403
    masked = visitor_as(Role.ANALYST).get(f"{path}/recipients").text
    assert "Zoé" not in masked


def test_a_draft_says_what_prevents_it_and_can_be_duplicated(marketer, shop):
    path = shop.draft(variants=[{"text": "Hello {{ ticket.total }}"}])
    page = marketer.get(path)
    assert "You cannot send this campaign yet" in page.text
    assert "Text of variant A: The text uses ticket.total, but a campaign has no ticket." in words(page)
    copied = marketer.post(f"{path}/duplicate")
    assert "Spring preview (copy)" in marketer.get(copied.headers["location"].partition(marketer.who.slug)[2]).text


def fields_of(page) -> dict[str, str]:
    """The form of the editor as a browser would send it."""
    form = page.text.partition('id="camp"')[2].partition("</form>")[0]
    values = dict(re.findall(r'<input[^>]*type="hidden" name="(\w+)" value="([^"]*)"', form))
    for name, value in re.findall(r'<input class="input"[^>]*name="(\w+)"[^>]*value="([^"]*)"', form):
        values[name] = html.unescape(value)
    for name, text in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>(.*?)</textarea>', form, re.DOTALL):
        values[name] = html.unescape(text.strip())
    values |= dict(re.findall(r'<input type="radio" name="(\w+)"[^>]*value="([^"]*)"[^>]* checked', form))
    for name, options in re.findall(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        values[name] = html.unescape(chosen[1]) if chosen else ""
    values.pop(csrf.FIELD, None)
    return values


def test_a_draft_is_written_by_sending_the_form_and_then_sent(marketer, shop):
    edit = marketer.post("/campaigns", name="Spring", segment=shop.segment).headers["location"]
    edit = edit.partition(marketer.who.slug)[2]
    page = marketer.get(edit)
    values = fields_of(page)
    assert values["include_0"] == shop.segment
    values["v1_text"] = "Hello {{ profile.first_name | default('you') }}"
    assert "say so in your privacy notice" in words(page)
    linked = {**values, "v1_text": 'See {{ link("https://shop.example") }}', "personal_links": "on"}
    previewed = ask_until("recipients get the text", lambda: marketer.post(f"{edit}/measure", **linked))
    assert "See https://go.example/l/examplelink0" in previewed
    assert marketer.post(edit, **linked).status_code == 303
    assert re.search(r'name="personal_links"[^>]* checked', marketer.get(edit).text)
    values["was"] = fields_of(marketer.get(edit))["was"]
    counted = ask_until("recipients get the text", lambda: marketer.post(f"{edit}/measure", **values))
    assert "<output>3</output>" in counted
    two = marketer.post(f"{edit}/measure", do="add", **values)
    assert fields_of(two) | {"v2_text": "", "v2_by": ""} == {
        **values, **fields_of(two), "variants": "2", "v1_share": "50", "v2_share": "50", "v2_text": "", "v2_by": "",
    }  # fmt: skip
    assert re.search(r"Hello Zoé\d", two.text)
    longest = marketer.post(f"{edit}/measure", preview="longest 1 0", **values)
    assert 'name="previewed" form="camp" value="longest 1 0"' in longest.text
    inserted = marketer.post(f"{edit}/measure", **{**values, "insert": "v1_text", "v1_field": "{{ store.city }}"})
    assert fields_of(inserted)["v1_text"].endswith("{{ store.city }}")
    saved = marketer.post(edit, then="send", **values)
    assert saved.headers["location"].endswith("/send"), saved.text
    path = edit.removesuffix("/edit")
    assert marketer.post(f"{path}/send/count").status_code == 303
    assert "counting the texts of all recipients" in marketer.get(f"{path}/send").text
    shop.work(1)
    page = marketer.get(f"{path}/send")
    assert "3 customers get a text." in words(page)
    assert "Exact count: 3 SMS parts for 3 recipients" in words(page)
    confirm = dict(re.findall(r'name="(was|recipients|cost)" value="([^"]*)"', page.text))
    confirm["cost"] = html.unescape(confirm["cost"])
    assert marketer.post(f"{path}/send", **confirm).status_code == 303
    again = marketer.post(f"{path}/send", **confirm)
    assert (again.status_code, "This campaign is scheduled already." in again.text) == (409, True)
    shop.work()
    assert figures(marketer.get(path))["Audience"] == 3


def test_the_confirmation_shows_what_is_sent_when_and_whom_a_rule_skips(api, marketer, shop):
    api.post("/v1/profiles", samples.profile(attributes={"language": "fr"}))
    shop.send()
    shop.work()
    languages = {
        "attribute": "language",
        "default": 'Thanks{{ profile.first_name | before(", ") }}! {{ link("https://shop.example/new") }}',
        "texts": {"fr": "Merci {{ profile.first_name | default('à vous') }} !"},
    }
    path = shop.draft(variants=[{"share": 60, "text": languages}, {"share": 40, "text": "Hello"}])
    shown = words(marketer.get(f"{path}/send"))
    for part in (
        "0 of 3 recipients get a text.",
        "3 recipients had a text in the last 24 hours. They get no text. Zoé",
        "No recipient gets the text at this start.",
        "As soon as it is confirmed, now",
        "Variant A 60%",
        "Thanks, [first name]! [link to shop.example/new]",
        "If these values are missing Thanks! [link to shop.example/new]",
        "French Merci [first name] ! If these values are missing Merci à vous !",
        "Variant B 40% Hello",
        "Link https://shop.example/new All recipients of a variant share one short link.",
    ):
        assert part in html.unescape(shown), part
    at = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    tomorrow = words(marketer.get(f"{shop.draft(schedule={'start': 'at', 'at': at})}/send"))
    assert "3 customers get a text." in tomorrow
    assert re.search(r"Start \d+ \w+ \d{4}, \d\d:\d\d \(UTC\)", tomorrow), tomorrow
    waiting = words(marketer.get(f"{shop.draft(cap='wait')}/send"))
    assert "3 customers get a text." in waiting
    assert "The text leaves as soon as the frequency cap allows it." in waiting


def test_progress_results_and_the_list_agree_on_the_texts_that_left(marketer, shop):
    path = shop.send()
    campaign_id = CAMPAIGN.decode(path.split("/")[2])
    clicks = "INSERT INTO click_totals VALUES (%s, 'campaign', %s, '1', 'person', 12)"
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        connection.execute(clicks, (shop.organization_id, campaign_id))
    assert "Clicks on links" not in marketer.get(f"{path}/results").text
    shop.work()
    with psycopg.connect(shop.shop.database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO campaign_totals SELECT organization_id, campaign_id, arm, 'failed', reason, country, 1, 1"
            " FROM campaign_totals WHERE organization_id = %s AND campaign_id = %s AND outcome IN ('sent', 'delivered')"
            " AND recipients > 0",
            (shop.organization_id, campaign_id),
        )
    assert re.search(r"A Hello \[first name\] 4 4 \d", words(marketer.get(path)))
    results = words(marketer.get(f"{path}/results"))
    assert "4 texts sent" in results
    assert "Clicks on links" in results
    assert re.search(r"Spring preview .*? 3 4 ", words(marketer.get("/campaigns")))


def test_a_test_text_of_a_variant_goes_to_the_verified_number_of_who_writes_it(marketer, shop):
    edit, number = f"{shop.draft()}/edit", samples.phone()
    assert "Verify your number" in marketer.get(edit).text
    refused = marketer.post(f"{edit}/test", **fields_of(marketer.get(edit)), test="1")
    assert "No test text was sent. Verify your own number first" in refused.text
    assert marketer.post("/settings/texts/number", number=number).status_code == 303
    shop.work(1)
    code = re.search(r"(\d{6}) is your code", html.unescape(marketer.get(f"/simulator/{number}").text))
    assert code is not None
    assert marketer.post("/settings/texts/number/code", code=code[1]).status_code == 303
    page = marketer.get(edit)
    assert "Send me a test text" in page.text
    values = fields_of(marketer.post(f"{edit}/measure", do="add", **fields_of(page))) | {"v2_text": "See {{ brand }}"}
    sent = marketer.post(f"{edit}/test", **values, test="2")
    assert "The test text of variant B is on its way to your number." in sent.text
    assert fields_of(sent)["v2_text"] == "See {{ brand }}"
    shop.work(1)
    assert "See " in html.unescape(marketer.get(f"/simulator/{number}").text)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": ""}, "Fill this in."),
        ({"rate": "fast"}, "A whole number from 1 to 10000000."),
        ({"holdout": "other", "holdout_other": "95"}, "A whole number from 0 to 90."),
        ({"start": "at", "at": "tomorrow"}, "A date and a time."),
        ({"start": "local", "day": "", "time": "25:00"}, "Choose a day."),
        ({"not_after": "never"}, "A date and a time."),
        ({"variants": "2", "v2_text": "", "v2_share": "50"}, "Write the text."),
        ({"include_1": "x" * 2_000}, "Expected 'a text' of length <= 64."),
        ({"exclude_3": "x" * 65}, "Expected 'a text' of length <= 64."),
        ({"received_0": "x" * 65}, "Expected 'a text' of length <= 64."),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field_and_nothing_is_lost(marketer, shop, wrong, sentence):
    edit = f"{shop.draft()}/edit"
    values = {**fields_of(marketer.get(edit)), "margin": "7", **wrong}
    refused = marketer.post(edit, **values)
    assert refused.status_code == 400
    assert sentence in html.unescape(refused.text)
    assert fields_of(refused)["margin"] == "7"
    assert fields_of(marketer.get(edit))["margin"] == "5"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"v1_text": "Hello {{ profile.nick }}"}, "There is no field profile.nick"),
        ({"v1_text": "x" * 1999}, "SMS parts; at most 10 are possible."),
        ({"v1_text": '{{ link("javascript:alert(1)") }}'}, "begins with https:// or http://"),
        ({"v1_text": '{{ link("https://go.example/l/x") }}'}, "go.example is the host of the short links"),
        ({"v1_text": '{{ link("https://shop.example") }}' * 10}, "A text has at most 3 links; this has 10."),
        ({"variants": "2", "v2_text": "B", "v1_share": "80", "v2_share": "50"}, "add up to 130 %"),
        ({"start": "at", "at": "2020-01-01T10:00"}, "The start is in the past."),
        ({"not_after": "2020-01-01T10:00"}, "The last moment of sending is in the past."),
        ({"include_0": ""}, "A campaign needs at least one segment."),
    ],
)
def test_a_fault_is_saved_in_the_draft_and_said_at_its_field(marketer, shop, wrong, sentence):
    path = shop.draft()
    values = {**fields_of(marketer.get(f"{path}/edit")), **wrong}
    assert marketer.post(f"{path}/edit", then="send", **values).headers["location"].endswith("/edit")
    page = html.unescape(marketer.get(f"{path}/edit").text)
    assert "The draft is saved. You cannot send it yet." in page
    assert sentence in page
    assert "Send 3 texts" not in marketer.get(f"{path}/send").text


def test_a_draft_with_a_part_that_no_file_may_have_is_shown_and_repaired(marketer, shop, api_database_url):
    path = shop.draft()
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        damaged = connection.execute(
            "UPDATE campaigns SET definition = jsonb_set(definition::jsonb, '{include,1}', to_jsonb(repeat('x', 2000)))::json"
            " WHERE id = %s RETURNING name",
            (CAMPAIGN.decode(path.rpartition("/")[2]),),
        ).fetchall()
    assert damaged[0][0] in marketer.get("/campaigns").text
    for page in (path, f"{path}/edit", f"{path}/send"):
        assert "Expected 'a text' of length <= 64." in html.unescape(marketer.get(page).text), page
    repaired = marketer.post(f"{path}/edit", then="send", **fields_of(marketer.get(f"{path}/edit")))
    assert repaired.headers["location"].endswith("/send")
    assert "Expected 'a text'" not in html.unescape(marketer.get(path).text)


def test_two_people_who_edit_lose_nothing(visitor_as, marketer, shop):
    edit = f"{shop.draft()}/edit"
    other = visitor_as(Role.ADMIN)
    mine, theirs = fields_of(marketer.get(edit)), fields_of(other.get(edit))
    assert other.post(edit, **{**theirs, "name": "Theirs"}).status_code == 303
    clash = marketer.post(edit, **{**mine, "name": "Mine"})
    assert clash.status_code == 409
    assert f"{other.who.email} changed this at" in clash.text
    values = fields_of(clash)
    assert values["name"] == "Mine"
    assert marketer.post(edit, **values).status_code == 303
    assert fields_of(marketer.get(edit))["name"] == "Mine"


def test_a_confirmation_that_is_out_of_date_sends_nothing(visitor_as, marketer, shop):
    path = shop.draft()
    page = ask_until("Send 3 texts now", lambda: marketer.get(f"{path}/send"))
    was = re.search(r'name="was" value="(\w+)"', page)[1]
    values = fields_of(marketer.get(f"{path}/edit"))
    assert visitor_as(Role.ADMIN).post(f"{path}/edit", **{**values, "name": "Changed"}).status_code == 303
    refused = marketer.post(f"{path}/send", was=was, recipients="3", cost="{}")
    assert (refused.status_code, "Nothing was sent. Check the campaign again." in refused.text) == (409, True)
