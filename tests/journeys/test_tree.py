"""Steps and conditions are put in, changed, moved and taken out at their places."""

import json

import pytest

from regulars.journeys import step_tree as tree
from regulars.journeys.definition import read_definition
from regulars.journeys.difference import count_changes, diff_definitions

EXIT = {"do": "exit"}
WAIT = {"do": "wait", "days": 1}
YES = {"type": "subscribed"}
NO = {"type": "subscribed", "is": False}


def definition(*steps, **more):
    return read_definition(json.dumps({"name": "J", "trigger": "purchase", "steps": list(steps), **more}).encode())


def branch(then=(), otherwise=()):
    return {"do": "branch", "if": YES, "then": list(then), "else": list(otherwise)}


def kinds(steps):
    """The shape: names of steps, and pairs of lists for the two ways."""
    return [
        (type(it).__name__, kinds(it.then), kinds(it.otherwise)) if hasattr(it, "then") else type(it).__name__
        for it in steps
    ]


def test_a_step_is_put_in_at_any_place_and_taken_out_again():
    one = definition(branch([WAIT]))
    [step] = definition(EXIT).steps
    for place in ("1", "2", "1.then.1", "1.then.2", "1.else.1"):
        changed = tree.insert_step(one, place, step)
        assert tree.step_at(changed, place) == step
        assert tree.remove_step(changed, place) == one


@pytest.mark.parametrize(
    "place", ["0", "3", "x", "", "1.then", "1.maybe.1", "1.then.9", "2.then.1", "-1", "1.then.1.then.1", "9" * 500]
)
def test_a_place_that_is_not_there_is_refused(place):
    with pytest.raises(tree.StepNotFound):
        tree.step_at(definition(branch([WAIT])), place)


def test_down_goes_through_every_place_in_the_order_of_reading_and_up_goes_back():
    one = definition(EXIT, branch([WAIT], [WAIT]))
    place, places = "1", []
    while not places or place != places[-1]:
        places.append(place)
        one, place = tree.move_step(one, place, "down")
    assert places == ["1", "1.then.1", "1.then.2", "1.else.1", "1.else.2", "2"]
    back = [place]
    while back[-1] != "1":
        one, place = tree.move_step(one, back[-1], "up")
        back.append(place)
    assert back == places[::-1]
    assert kinds(one.steps) == ["Exit", ("Branch", ["Wait"], ["Wait"])]


def test_a_branch_moves_with_everything_in_it():
    moved, place = tree.move_step(definition(branch([WAIT], [EXIT]), WAIT), "1", "down")
    assert (place, kinds(moved.steps)) == ("2", ["Wait", ("Branch", ["Wait"], ["Exit"])])


def test_a_branch_that_lost_its_question_asks_nothing_and_the_filter_may_be_missing():
    one = tree.with_condition(definition(branch()), "1", None)
    assert tree.condition_of(one, "1").of == ()
    assert tree.with_condition(definition(filter=YES), "filter", None).filter is None
    with pytest.raises(tree.StepNotFound):
        tree.condition_of(definition(WAIT), "1")


def test_a_difference_names_what_came_and_what_went():
    before = definition(WAIT, branch([{"do": "send_text", "text": "Hello"}]))
    after = definition(WAIT, branch([{"do": "send_text", "text": "Good day"}], [EXIT]), filter=NO)
    lines = diff_definitions(before, after)
    signed = [(line.sign, line.text) for line in lines if line.sign]
    assert signed == [
        ("+", "Only if: may not be texted"),
        ("-", "Send a text: “Hello”"),
        ("+", "Send a text: “Good day”"),
        ("+", "Exit"),
    ]
    assert count_changes(lines) == (3, 1)
    assert count_changes(diff_definitions(after, after)) == (0, 0)
