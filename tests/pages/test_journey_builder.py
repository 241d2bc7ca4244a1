"""The builder without a browser: each form makes one change of the draft, refuses what is wrong, and loses nothing."""

import html
import re

import pytest
from tests.pages.test_journeys import id_of
from tests.support import samples
from tests.support.drain_queues import drain_queues
from tests.support.journeys import make_journey
from tests.support.visitor import Visitor

from regulars.web.access import Role

WAIT = {"do": "wait", "days": 3}
TEXT = {"do": "send_text", "text": "Hello"}


class Builder:
    """One person at the builder, who opens a form and sends it."""

    def __init__(self, visitor: Visitor, journey: str) -> None:
        self.visitor = visitor
        self.journey = journey

    def page(self, **query: str) -> str:
        answer = self.visitor.get(f"/journeys/{self.journey}/edit", **query)
        assert answer.status_code == 200, answer.status_code
        return answer.text

    def opened(self, **query: str) -> dict[str, str]:
        """What the form of a panel remembers."""
        panel = self.page(**query).partition('id="panel"')[2]
        return {"was": re.search(r'name="was" value="(\w*)"', panel)[1]}

    def send(self, act: str, /, **fields: str):
        return self.visitor.post(f"/journeys/{self.journey}/edit/{act}", **fields)

    def add(self, place: str, kind: str, **fields: str) -> None:
        answer = self.send("add", place=place, kind=kind, **self.opened(add=place, kind=kind), **fields)
        assert answer.status_code == 303, answer.text

    def tool(self, act: str, place: str, **fields: str):
        flow = self.page().partition(f'id="s-{place}"')[2]
        form = flow.partition(f'/edit/{act}"')[2]
        return self.send(act, place=place, was=re.search(r'name="was" value="(\w*)"', form)[1], **fields)

    def names(self) -> list[str]:
        flow = self.page().partition('id="panel"')[0]
        return [html.unescape(it) for it in re.findall(r'class="step-name">(.*?)</span>', flow)[2:]]

    def save(self, **fields: str):
        return self.send("save", **{"was": self.shown(), **fields})

    def shown(self) -> str:
        found = re.search(r'/edit/save".*?name="was" value="(\w+)"', self.page(), re.DOTALL)
        return found[1] if found else ""


@pytest.fixture
def blank(marketer) -> Builder:
    return Builder(marketer, id_of(marketer.post("/journeys", start="blank")))


def test_every_kind_of_step_is_added_changed_and_saved(blank):
    blank.add("1", "wait", days="2", hours="3")
    blank.add("2", "wait_until", time="10:30", friday="on")
    blank.add("3", "wait_for_purchase", days="30")
    blank.add("3.then.1", "set_attribute", key="came_back", value="true")
    blank.add("3.else.1", "send_text", text="We miss you.")
    blank.add("4", "branch")
    blank.add("4.then.1", "split", percent="10")
    blank.add("4.then.1.then.1", "exit")
    blank.add("4.else.1", "wait", minutes="1")
    assert blank.names() == [
        "2 days and 3 hours",
        "10:30 local time on Friday",
        "Buys within 30 days",
        "came_back = true",
        "“We miss you.”",
        "May be texted?",
        "10% of the customers",
        "Exit",
        "1 minute",
    ]
    assert blank.send("step", place="1", kind="wait", days="5", **blank.opened(step="1")).status_code == 303
    assert blank.names()[0] == "5 days"
    assert "version=1" in blank.save().headers["location"]
    assert "no changes yet" in blank.page()


def test_what_is_wrong_stands_beside_its_field_and_nothing_is_saved(blank):
    for kind, fields, says in (
        ("wait", {"days": "400"}, "A whole number from 0 to 365."),
        ("wait", {"days": "x"}, "A whole number from 0 to 365."),
        ("wait_until", {"time": "25:00"}, "Enter a time such as 10:00."),
        ("split", {"percent": "100"}, "A whole number from 1 to 99."),
        ("send_text", {"text": "  "}, "Write the text."),
        ("send_text", {"text": "x" * 2001}, "At most 2000 characters"),
        ("set_attribute", {"key": ""}, "Fill this in."),
    ):
        answer = blank.send("add", place="1", kind=kind, **blank.opened(add="1", kind=kind), **fields)
        assert (answer.status_code, says in answer.text) == (400, True), (kind, fields)
    assert blank.names() == []


def test_faults_stand_beside_the_step_they_concern(blank):
    blank.add("1", "send_text", text="Hello {{ profile.shoe }}")
    blank.add("2", "wait")
    card = blank.page().partition('id="s-1"')[2].partition('id="s-2"')[0]
    assert "There is no field profile.shoe" in html.unescape(card)
    assert "The wait has no length" in blank.page().partition('id="s-2"')[2]
    # A draft may be saved with faults; it is activated without them only.
    assert blank.save().status_code == 303
    assert blank.visitor.post(f"/journeys/{blank.journey}/activate").status_code == 409


def test_steps_are_moved_and_removed_by_their_buttons(blank):
    blank.add("1", "wait", days="1")
    blank.add("2", "branch")
    assert blank.tool("move", "1", way="down").headers["location"].endswith("#s-1.then.1")
    assert blank.names() == ["May be texted?", "1 day"]
    assert blank.tool("remove", "1").status_code == 200
    assert "This also removes 1 step in its paths" in blank.tool("remove", "1").text
    assert blank.tool("remove", "1", sure="1").status_code == 303
    assert blank.names() == []


def test_the_entry_is_changed(blank):
    sent = blank.send(
        "entry",
        name="Welcome",
        trigger="opt_in",
        reentry="after_days",
        reentry_days="30",
        exit_return="on",
        **blank.opened(entry="1"),
    )
    assert sent.status_code == 303
    page = blank.page()
    assert "A customer opts in to texts" in page
    assert "Customers can enter again after 30 days" in page
    assert "an opt-out or a return" in page
    refused = blank.send(
        "entry", name="", trigger="birthday", reentry="after_days", reentry_days="0", **blank.opened(entry="1")
    )
    assert refused.status_code == 400
    assert "3 fields need a change" in refused.text


def keep(builder, owner: str, *conditions: dict[str, str], **more: str):
    """Send the tree of conditions as its form does; `more` is for what stands elsewhere in it."""
    opened = builder.opened(**({"filter": "1"} if owner == "filter" else {"step": owner}))
    fields = {"r~kind": "all"} | {
        f"r.{number}~{name}": value for number, one in enumerate(conditions) for name, value in one.items()
    }
    return builder.send("condition", **{"of": owner, "keep": "1", **opened, **fields, **more})


def test_comparisons_follow_the_declared_type(api, blank):
    attributes = {"size": "12", "name": "x", "vip": "true", "born": "1990-01-01"}
    api.post("/v1/profiles", samples.profile(attributes=attributes))
    offered = {"size": "is at least", "name": "starts with", "born": "is before"}
    for key, words in offered.items():
        tree = {"of": "filter", "r~kind": "all", "r.0~kind": "attribute", "r.0~key": key}
        panel = blank.send("condition", **tree).text.partition('id="panel"')[2]
        assert words in panel
        for other in set(offered.values()) - {words}:
            assert other not in panel
    assert blank.names() == []
    size = {"kind": "attribute", "key": "size", "was": "size", "cmp": "between", "low": "10", "high": "14"}
    amount = {"kind": "amount", "low": "150"}
    bought = {"kind": "bought", "low": "2", "days": "90"}
    nested = {"r.3~kind": "any", "r.3.0~kind": "consent", "r.3.0~is": "no"}
    refused = keep(blank, "filter", size, {**amount, "low": "abc"}, bought, **nested)
    assert (refused.status_code, "Fill in an amount" in refused.text) == (400, True)
    assert keep(blank, "filter", size, amount, bought, **nested).status_code == 303
    panel = blank.page(filter="1")
    for field in ('name="r.0~high" type="text" value="14"', 'value="150.00"', 'name="r.3.0~is"'):
        assert field in panel
    assert "Size is between 10 and 14" in panel
    # The same tree without one, by the button of the condition.
    less = blank.send("condition", act="remove r.1", **{"of": "filter", "r~kind": "none", "r.0~kind": "named"})
    assert less.status_code == 200
    assert keep(blank, "filter").status_code == 303
    assert "All customers" in blank.page()


def test_a_branch_takes_its_condition_and_a_second_editor_sees_both(visitor_as, tenant, api_database_url):
    branch = {"do": "branch", "if": {"type": "subscribed"}}
    journey = make_journey(api_database_url, tenant.organization_id, branch, is_live=False)
    anne, zoe = (Builder(visitor_as(Role.MARKETER), journey) for _ in range(2))
    seen = zoe.opened(step="1")
    assert keep(anne, "1", {"kind": "consent", "is": "no"}).status_code == 303
    assert "not" in anne.names()[0]
    late = keep(zoe, "1", {"kind": "named"}, **seen)
    assert (late.status_code, "Current value: " in late.text) == (409, True)
    # A list in which something is chosen brings the form again, which still remembers what it was drawn from.
    chosen = zoe.send("condition", **{"of": "1", "r~kind": "all", "r.0~kind": "named", **seen}).text
    assert f'name="was" value="{seen["was"]}"' in chosen.partition('id="panel"')[2]


def test_a_segment_is_picked_at_the_entry_and_in_a_branch_and_the_trace_names_it(api, blank, tenant, api_database_url):
    saved = blank.visitor.post("/segments/save", name="Known by name", **{"r~kind": "all", "r.0~kind": "named"})
    segment = saved.headers["location"].rpartition("/")[2]
    picked = {"kind": "segment", "segment": segment}
    assert keep(blank, "filter", {**picked, "segment": ""}).status_code == 400
    assert keep(blank, "filter", picked).status_code == 303
    assert f'<option value="{segment}" selected>Known by name</option>' in blank.page(filter="1")
    blank.add("1", "branch")
    assert keep(blank, "1", {**picked, "is": "no"}).status_code == 303
    assert keep(blank, "1", picked).status_code == 303
    assert "“Known by name”" in blank.names()[0]
    blank.add("1.then.1", "wait", days="3")
    assert blank.save().status_code == 303
    assert blank.visitor.post(f"/journeys/{blank.journey}/activate").status_code == 303
    store = api.post("/v1/stores", samples.store()).json()["id"]
    for name in ("Odile", None):
        profile = api.post("/v1/profiles", samples.profile(first_name=name, last_name=None)).json()
        api.post("/v1/sales-events", samples.sale(store, profile_id=profile["id"]))
    for _ in range(2):
        drain_queues(api_database_url, tenant.organization_id)
    runs = re.findall(r"runs/(run_\w+)", blank.visitor.get(f"/journeys/{blank.journey}/runs").text)
    trace = blank.visitor.get(f"/journeys/{blank.journey}/runs/{runs[0]}").text
    assert len(set(runs)) == 1
    assert segment not in blank.visitor.get(f"/journeys/{blank.journey}").text
    # At the entry, and at the branch.
    assert trace.count("In the segment Known by name, version 1") == 2


def test_the_text_is_counted_and_a_costly_character_replaced(api, blank, tenant, api_database_url):
    store = api.post("/v1/stores", samples.store(name="Lyon")).json()
    customer = api.post("/v1/profiles", samples.profile(first_name="Odile")).json()
    api.post("/v1/sales-events", samples.sale(store["id"], profile_id=customer["id"]))
    fields = {
        "place": "1",
        "kind": "send_text",
        "is_new": "1",
        "was": "x",
        "text": "It’s {{ profile.first_name }} at {{ store.name }}, {{ store.city }}",
    }
    counted = html.unescape(blank.send("measure", **fields).text)
    assert "makes SMS parts shorter" in counted
    assert "Right single quotation mark" in counted
    assert "Odile" in counted
    assert f"It’s Odile at Lyon, {store['address']['locality']}" in counted
    replaced = html.unescape(blank.send("measure", **fields, replace="’").text)
    assert "It's {{ profile.first_name }} at {{ store.name }}, {{ store.city }}</textarea>" in replaced
    assert "makes SMS parts shorter" not in replaced
    inserted = html.unescape(blank.send("measure", **fields, insert="1", field="{{ brand }}").text)
    assert "at {{ store.name }}, {{ store.city }} {{ brand }}</textarea>" in inserted
    assert "does not end with" in html.unescape(blank.send("measure", **{**fields, "text": "{{ x"}).text)
    assert "No customer has this name, number or ID" in blank.send("measure", **fields, who="nobody").text
    assert blank.names() == []


def test_the_second_of_two_editors_sees_both_and_loses_nothing(visitor_as, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, TEXT, WAIT, is_live=False)
    anne, zoe = (Builder(visitor_as(Role.MARKETER), journey) for _ in range(2))
    seen_by_anne, seen_by_zoe = anne.opened(step="1"), zoe.opened(step="1")
    waits = zoe.opened(step="2")
    assert anne.send("step", place="1", kind="send_text", text="From Anne", **seen_by_anne).status_code == 303
    clash = zoe.send("step", place="1", kind="send_text", text="From Zoé", **seen_by_zoe)
    assert clash.status_code == 409
    shown = html.unescape(clash.text)
    assert anne.visitor.who.email in shown
    assert "Current value: “From Anne”" in shown
    assert "From Zoé</textarea>" in shown
    assert anne.names()[0] == "“From Anne”"
    # Elsewhere in the draft there is no conflict, also when the step has moved by now.
    anne.add("1", "exit")
    assert zoe.send("step", place="2", kind="wait", days="9", **waits).status_code == 303
    assert zoe.names() == ["Exit", "“From Anne”", "9 days"]
    # The form that came back saves over it.
    was = re.search(r'name="was" value="(\w+)"', clash.text.partition('id="panel"')[2])[1]
    assert zoe.send("step", place="2", kind="send_text", text="From Zoé", was=was).status_code == 303
    assert zoe.names() == ["Exit", "“From Zoé”", "9 days"]


def test_a_step_that_was_removed_meanwhile_can_be_added_again(visitor_as, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, TEXT, WAIT, is_live=False)
    anne, zoe = (Builder(visitor_as(Role.MARKETER), journey) for _ in range(2))
    seen = zoe.opened(step="2")
    anne.tool("remove", "2")
    clash = zoe.send("step", place="2", kind="wait", days="9", **seen)
    assert clash.status_code == 409
    assert 'name="days" type="number" value="9"' in clash.text
    was = re.search(r'name="was" value="(\w+)"', clash.text.partition('id="panel"')[2])[1]
    assert zoe.send("add", place="2", kind="wait", days="9", was=was).status_code == 303
    assert zoe.names() == ["“Hello”", "9 days"]


def test_a_user_who_saves_over_the_change_of_another_is_warned_and_sees_the_difference(
    visitor_as, tenant, api_database_url
):
    journey = make_journey(api_database_url, tenant.organization_id, WAIT, is_live=False)
    anne, zoe = (Builder(visitor_as(Role.MARKETER), journey) for _ in range(2))
    anne.add("2", "exit")
    shown = anne.shown()
    zoe.add("1", "send_text", text="From Zoé")
    clash = anne.save(was=shown)
    assert clash.status_code == 409
    assert "From Zoé" in clash.text
    assert anne.save().status_code == 303
    # The draft is gone with the version that it became.
    assert zoe.save().status_code == 409


def test_a_live_journey_takes_only_what_can_run(marketer, tenant, api_database_url):
    live = Builder(marketer, make_journey(api_database_url, tenant.organization_id, WAIT))
    live.add("2", "send_text", text="{{ nothing.known }}")
    assert "You cannot publish this draft yet" in live.page()
    assert live.save().status_code == 409
    live.tool("remove", "2")
    live.add("2", "exit")
    assert live.save().status_code == 303
    assert "Version 2, live since" in marketer.get(f"/journeys/{live.journey}").text


def test_a_draft_is_thrown_away(blank):
    blank.add("1", "wait", days="1")
    assert "You lose 1 change since it was created" in blank.visitor.get(f"/journeys/{blank.journey}/edit/discard").text
    assert blank.send("discard").status_code == 303
    assert blank.names() == []


def test_a_draft_is_played_over_the_last_days_before_it_is_saved(api, blank, tenant, api_database_url):
    store = api.post("/v1/stores", samples.store()).json()
    customer = api.post("/v1/profiles", samples.profile(first_name="Odile")).json()
    api.post("/v1/sales-events", samples.sale(store["id"], profile_id=customer["id"]))
    blank.add("1", "send_text", text="Hello")
    path = f"/journeys/{blank.journey}/backtest"
    assert blank.visitor.post(path, days="91").status_code == 400
    assert blank.visitor.post(path, days="30").status_code == 303
    assert "events checked so far" in blank.visitor.get(path).text
    drain_queues(api_database_url, tenant.organization_id)
    page = blank.visitor.get(path).text
    assert re.search(r"Would enter</dt><dd><strong><a [^>]*>1</a>", page)
    assert "Skipped: no consent" in page
    assert "SMS parts, estimated" in page
    blank.add("2", "exit")
    assert "The journey has changed since" in blank.visitor.get(path).text


@pytest.mark.parametrize(
    ("act", "fields"),
    [
        ("move", {"place": "9", "way": "up", "was": ""}),
        ("move", {"place": "1", "way": "sideways"}),
        ("remove", {"place": "nowhere"}),
        ("step", {"place": "1.then.1.else.9", "kind": "wait"}),
        ("add", {"place": "7", "kind": "wait"}),
        ("add", {"place": "", "kind": "juggle"}),
        ("condition", {"of": "5", "at": "1"}),
        ("condition", {}),
        ("measure", {"place": "x"}),
        ("entry", {}),
        ("save", {}),
    ],
)
def test_a_form_from_nowhere_is_refused_and_breaks_nothing(blank, act, fields):
    assert blank.send(act, **fields).status_code in {303, 400, 404, 409}
    assert blank.names() == []


def test_the_builder_is_in_the_audit_log(visitor_as):
    owner = visitor_as(Role.OWNER)
    builder = Builder(owner, id_of(owner.post("/journeys", start="blank")))
    builder.add("1", "wait", days="1")
    builder.add("2", "exit")
    builder.save()
    builder.add("1", "wait", days="1")
    builder.send("discard")
    acts = [line.split(",")[3] for line in owner.get("/settings/audit.csv").text.splitlines()[1:]]
    assert acts == ["journey.discard_draft", "journey.edit", "journey.save_version", "journey.edit", "journey.create"]
