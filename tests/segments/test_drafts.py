"""A draft in a form: read, changed by buttons, and the same condition again after a round."""

import json

import pytest

from regulars.conditions.comparisons import COMPARISONS_BY_TYPE
from regulars.conditions.forms import draft
from regulars.conditions.forms.draft import apply_action, read_tree, walk
from regulars.conditions.forms.fields import IncompleteCondition, condition_of, fit_fields, node_of
from regulars.conditions.forms.node import Node
from regulars.conditions.forms.view import build
from regulars.conditions.labels import COMPARISONS, HIDDEN, Labels, Names
from regulars.conditions.tree import CONDITIONS_MAX
from regulars.segments.definition import read_definition
from regulars.segments.pages.figures import find_changes
from regulars.web.format import Format

PROPERTY = {"key": "collection", "comparison": "is", "value": "Lin lavé"}
CONDITIONS = [
    {"type": "attribute", "key": "tier", "comparison": "any_of", "values": ["Gold", "Platinum"]},
    {"type": "attribute", "key": "tier", "comparison": "none_of", "values": ["Gold"], "without_value": True},
    {"type": "attribute", "key": "points", "comparison": "between", "values": ["200", "1500"]},
    {"type": "attribute", "key": "points", "comparison": "is_not", "value": "0", "without_value": False},
    {"type": "attribute", "key": "newsletter", "comparison": "is_true"},
    {"type": "attribute", "key": "birthday", "comparison": "anniversary_in_next_days", "days": 7},
    {"type": "attribute", "key": "city", "comparison": "is_not_set"},
    {"type": "store", "any_of": ["LYO", "PAR"]},
    {"type": "amount", "at_least_cents": 100, "at_most_cents": 1990},
    {"type": "currency", "any_of": ["EUR"]},
    {"type": "product", "any_of": ["A"], "property": PROPERTY},
    {"type": "segment", "id": "seg_1", "is": False},
    {"type": "consent", "state": "may_be_texted", "is": False},
    {"type": "consent", "state": "may_be_texted", "sources": ["EVENT"], "stores": ["LYO"], "since": {"comparison": "after", "date": "2026-01-02"}},
    {"type": "consent", "state": "never_asked"},
    {"type": "bought", "at_least": 1, "window": {"last_days": 60}, "stores": ["LYO"]},
    {"type": "bought", "none": True},
    {"type": "returned", "at_least": 2, "at_most": 4, "window": {"from": "2026-01-01", "to": "2026-01-31"}},
    {"type": "tickets", "at_most": 3, "window": {"last_days": 0}},
    {"type": "bought", "count": "days", "at_least": 2, "at_most": 3, "window": {"last_days": 730}},
    {"type": "articles", "at_least": 0.5, "property": PROPERTY, "products": ["A", "B"]},
    {"type": "articles", "at_least": 1234.567, "at_most": 1234567},
    {"type": "articles", "at_least": -1000000000, "at_most": 0.000001},
    {"type": "attribute", "key": "city", "comparison": "starts_with", "value": " Saint "},
    {"type": "attribute", "key": "city", "comparison": "any_of", "values": [" Lyon", "Lyon", ""]},
    {"type": "attribute", "key": "city", "comparison": "is_not", "value": "", "without_value": True},
    {"type": "attribute", "key": "joined", "comparison": "between", "values": ["2026-11-15T10:00:00Z", "2026-11-16"]},
    {"type": "attribute", "key": "points", "comparison": "between", "values": [" 200", "1500 "]},
    {"type": "spend", "currency": "EUR", "at_least_cents": -9007199254740991, "at_most_cents": 9007199254740991},
    {"type": "spend", "currency": "CHF", "at_least_cents": -100, "at_most_cents": 20050, "window": {"last_days": 365}},
    {"type": "spend", "currency": "EUR", "none": True},
    {"type": "ticket_value", "currency": "EUR", "at_least_cents": 10000},
    {"type": "first_purchase", "when": {"comparison": "between", "from": "2026-01-01", "to": "2026-02-01"}},
    {"type": "last_purchase", "when": {"comparison": "not_in_last_days", "days": 60, "without_value": True}, "property": PROPERTY},
    {"type": "texts", "days": 30, "got": False, "journey": "jrn_x"},
    {"type": "received_campaign", "id": "cmp_x", "is": False},
    {"type": "created", "when": {"comparison": "in_last_days", "days": 30}},
    {"type": "named", "is": False},
    {"type": "country", "any_of": ["FR", "CH"]},
    {"type": "segment", "id": "seg_x"},
    {"type": "segment", "id": "seg_x", "is": False},
    {"type": "consent", "state": "may_be_texted", "is": False},
]  # fmt: skip


# What a form says in other words, and those.
IN_OTHER_WORDS = [
    ({"type": "bought"}, {"type": "bought", "at_least": 1}),
    ({"type": "tickets", "window": {"last_days": 7}}, {"type": "tickets", "window": {"last_days": 7}, "at_least": 1}),
    (
        {"type": "attribute", "key": "tier", "comparison": "any_of", "values": ["Gold"], "without_value": True},
        {"type": "attribute", "key": "tier", "comparison": "any_of", "values": ["Gold"]},
    ),
    (
        {"type": "attribute", "key": "tier", "comparison": "is_set", "value": "x"},
        {"type": "attribute", "key": "tier", "comparison": "is_set"},
    ),
]  # fmt: skip


def match_of(*conditions):
    return read_definition(json.dumps({"name": "S", "match": {"type": "all", "of": conditions}}).encode()).match


@pytest.mark.parametrize("given", CONDITIONS)
def test_a_condition_is_the_same_after_a_round_through_a_form(given):
    [condition] = match_of(given).of
    node = node_of(condition)
    sent = {f"r.0~{name}": values for name, values in node.fields.items() if values}
    root = read_tree({"r~kind": ["all"], "r.0~kind": [node.kind], **sent})
    assert build(root).match.of == (condition,)


@pytest.mark.parametrize(("given", "said"), IN_OTHER_WORDS)
def test_what_a_form_says_in_other_words_it_says_in_the_same_ones_again(given, said):
    once = build(node_of(match_of(given))).match
    assert once == match_of(said)
    assert build(node_of(once)).match == once


@pytest.mark.parametrize("given", CONDITIONS)
def test_every_condition_has_words_and_they_can_leave_out_what_a_user_typed(given):
    [condition] = match_of(given).of
    names = Names(stores={"LYO": "Lyon"}, segments={"seg_x": "Gold"}, journeys={"jrn_x": "Welcome"})
    assert Labels(Format("en-GB", "UTC"), names).sentence(condition)
    hidden = Labels(Format("en-GB", "UTC"), names, shows_values=False).sentence(condition)
    for constant in ("Platinum", "1500", "Lin lavé", "365", "200.50", "FR", "2026"):
        assert constant not in hidden
    assert HIDDEN in Labels(Format("en-GB", "UTC"), names, shows_values=False).sentence(match_of(CONDITIONS[0]).of[0])


def test_every_comparison_is_offered_and_has_words():
    assert COMPARISONS.keys() == {it for offered in COMPARISONS_BY_TYPE.values() for it in offered}


def test_buttons_add_remove_and_drop():
    root = Node("all")
    assert apply_action(root, "add r spend") == (0,)
    assert [node.kind for _, node in walk(root)] == ["all", "spend"]
    assert apply_action(root, "group r") == (1,)
    assert apply_action(root, "add r.1") == (1, 0)
    root.inner[1].inner[0].set("values", "Gold", "Platinum and more")
    apply_action(root, "drop r.1.0 values Platinum and more")
    assert root.inner[1].inner[0].get_list("values") == ["Gold"]
    assert apply_action(root, "remove r.1.0") == (1,)
    assert apply_action(root, "remove r.0") == ()
    assert [node.kind for _, node in walk(root)] == ["all", "any"]


def test_a_condition_keeps_its_number_when_its_place_changes():
    root = read_tree({"r~kind": ["all"], "r.0~kind": ["named"], "r.1~kind": ["bought"], "r.1~number": ["nonsense"]})
    draft.number_nodes(root)
    assert [node.get("number") for _, node in walk(root)] == ["1", "2", "3"]
    apply_action(root, "remove r.0")
    apply_action(root, "add r")
    draft.number_nodes(root)
    assert [(node.kind, node.get("number")) for _, node in walk(root)] == [
        ("all", "1"),
        ("bought", "3"),
        ("attribute", "2"),
    ]


@pytest.mark.parametrize("act", ["", "add", "add x", "add r.7", "fly r", "remove r", "drop r.1", "add r.x", "add r.-1"])
def test_an_unknown_button_changes_nothing(act):
    root = Node("all", inner=[Node("named")])
    apply_action(root, act)
    assert [node.kind for _, node in walk(root)] == ["all", "named"]


def test_a_draft_stays_within_its_limits():
    root = Node("all", inner=[Node("named") for _ in range(CONDITIONS_MAX)])
    assert apply_action(root, "add r") is None
    deep = read_tree({".".join(["r", *["0"] * depth]) + "~kind": ["all"] for depth in range(40)})
    assert max(len(path) for path, _ in walk(deep)) == 4
    assert apply_action(deep, "group r.0.0.0.0") is None


def test_what_is_picked_joins_its_list():
    root = read_tree(
        {"r~kind": ["all"], "r.0~kind": ["country"], "r.0~countries": ["FR"], "r.0~more_countries": ["CH"]}
    )
    assert root.inner[0].get_list("countries") == ["FR", "CH"]


def test_what_says_too_little_is_left_out_and_named():
    root = Node("all", inner=[Node("attribute"), Node("named"), Node("any", inner=[Node("country")])])
    built = build(root)
    assert built.incomplete == {(0,): "Choose an attribute.", (2, 0): "Choose a country."}
    assert built.paths == {(): (), (0,): (1,), (1,): (2,)}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("bought", {"low": "many"}),
        ("bought", {"low": "1", "days": "-1"}),
        ("bought", {"low": "1", "days": "9999999"}),
        ("spend", {"low": "1,500", "days": "1"}),
        ("articles", {"low": "1e400", "days": "1"}),
        ("created", {"when_cmp": "before", "when_date": "yesterday"}),
        ("created", {"when_cmp": "sometime", "when_days": "1"}),
        ("country", {"countries": "France"}),
        ("consent", {"state": "maybe"}),
    ],
)
def test_what_cannot_be_read_is_said_and_breaks_nothing(kind, fields):
    with pytest.raises(IncompleteCondition):
        condition_of(Node(kind, {name: [value] for name, value in fields.items()}))


def test_another_key_begins_with_its_own_comparison():
    from_text = Node("attribute", {"key": ["city"], "was": ["points"], "cmp": ["between"], "value": ["1"]})
    types = {"city": next((kind, ()) for kind in COMPARISONS_BY_TYPE if kind.value == "text")}
    fit_fields(from_text, types, {})
    assert from_text.get("cmp") == "is"
    unchanged = Node("attribute", {"key": ["city"], "was": ["city"], "cmp": ["between"]})
    fit_fields(unchanged, types, {})
    assert unchanged.get("cmp") == "between"


def test_a_difference_names_what_came_and_what_went():
    words = Labels(Format("en-GB", "UTC"), Names())
    before, after = match_of(CONDITIONS[0], {"type": "named"}), match_of(CONDITIONS[0], {"type": "bought"})
    assert [(one.is_added, one.sentence) for one in find_changes(before, after, words)] == [
        (False, "All of these: Known by name"),
        (True, "All of these: Bought at least 1 times, at any time"),
    ]
    assert draft.path_of("r.1.0") == (1, 0)


def test_a_place_that_no_form_has_is_left_out():
    far = "9" * 5000
    root = read_tree(
        {"r~kind": ["all"], f"r.{far}~kind": ["bought"], "r.\u0663~kind": ["bought"], "r.0~kind": ["named"]}
    )
    assert [node.kind for node in root.inner] == ["named"]
    for act in (f"remove r.{far}", f"add r.{far}", "remove r.\u0663", "remove r.7"):
        assert apply_action(root, act) is None
    assert [node.kind for node in root.inner] == ["named"]
