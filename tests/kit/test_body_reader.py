"""Reading a body of a type: all its faults at once, in words, and the names of what the type does not know."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from regulars.kit.body_reader import Reader, forbid_unknown_fields
from regulars.kit.errors import ApiError, InvalidJson, ReservedExternalId, ValidationError, invalid
from regulars.kit.validation import FAULTS_MAX
from regulars.kit.wire import ExternalIdIn, Text, TimestampIn


def check_even(value: int, *, field: str) -> None:
    if value % 2:
        raise invalid(field, "ODD", "It must be even.")


class Line(msgspec.Struct):
    quantity: Annotated[int, Meta(ge=1, le=9, extra={"check": check_even, "hint": "Count pairs."})]
    note: Text | None = None


class Ticket(msgspec.Struct, kw_only=True):
    external_id: ExternalIdIn
    kind: Literal["A", "B"]
    at: TimestampIn | None = None
    free: msgspec.Raw = msgspec.Raw()
    values: dict[Annotated[str, Meta(min_length=1)], bool | int | float | str] = {}
    lines: Annotated[list[Line], Meta(min_length=1, max_length=30)]


READER: Reader[Ticket] = Reader(Ticket)
GOOD: dict[str, Any] = {"external_id": "a", "kind": "A", "lines": [{"quantity": 2}]}


def read(**changes: Any) -> tuple[Ticket, tuple[str, ...]]:
    return READER.read(msgspec.json.encode({**GOOD, **changes}), lambda ticket, ignored: (ticket, ignored))


def refusal(body: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        READER.read(body if isinstance(body, bytes) else msgspec.json.encode(body), lambda ticket, _: ticket)
    return caught.value


def test_a_body_that_fits_is_read_and_nothing_is_ignored():
    ticket, ignored = read(at="2026-01-02T03:04:05Z", free={"any": 1}, values={"a": 1.5})
    assert (ticket.external_id, ticket.lines[0].quantity, bytes(ticket.free), ignored) == ("a", 2, b'{"any":1}', ())


def test_every_fault_is_named_in_the_order_of_the_fields():
    error = refusal(
        {
            "lines": [{"quantity": 3}, {"quantity": "2", "note": 7}, {}, None],
            "values": {"": 1, "b": [], "c": None},
            "at": "yesterday",
            "kind": "C",
            "external_id": "evt_1",
        }
    )
    assert [(it.field, it.code, it.message) for it in error.errors] == [
        ("external_id", "RESERVED", "It starts with one of prof_, sub_, store_, evt_."),
        ("kind", "NOT_ALLOWED", "It must be one of A, B."),
        ("at", "FORMAT", "It cannot be read: it is not an ISO 8601 date and time with Z or an offset."),
        ("values", "LENGTH", "The name of a member is wrong: It must not be empty."),
        ("values.b", "WRONG_TYPE", "It must be a number, text or true or false."),
        ("values.c", "WRONG_TYPE", "null is no scalar; leave the key out. It must be a number, text or true or false."),
        ("lines[0].quantity", "ODD", "It must be even."),
        ("lines[1].quantity", "WRONG_TYPE", "It must be a whole number. Count pairs."),
        ("lines[1].note", "WRONG_TYPE", "It must be text."),
        ("lines[2].quantity", "REQUIRED", "This field is required."),
        ("lines[3]", "REQUIRED", "This field is required."),
    ]


def test_the_first_fault_gives_the_code_and_the_words_and_says_how_many_more_there_are():
    error = refusal({**GOOD, "external_id": "evt_1", "kind": 1})
    assert isinstance(error, ReservedExternalId)
    assert error.detail.endswith("(prof_, sub_, store_, evt_). 1 more fault is listed in errors.")
    error = refusal({})
    assert isinstance(error, ValidationError)
    assert error.detail == "external_id is required. 2 more faults are listed in errors."
    assert refusal({**GOOD, "kind": 1}).detail == "kind: It must be one of A, B."


def test_at_most_twenty_faults_are_listed():
    exactly = refusal({**GOOD, "lines": [{}] * FAULTS_MAX})
    assert (len(exactly.errors), "19 more faults" in exactly.detail) == (20, True)
    beyond = refusal({**GOOD, "lines": [{}] * (FAULTS_MAX + 1)})
    assert (len(beyond.errors), "At least 20 more faults" in beyond.detail) == (20, True)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"lines": []}, "lines", "It must not be empty."),
        ({"lines": [{"quantity": 2}] * 31}, "lines", "It has more than 30 members."),
        ({"lines": {}}, "lines", "It must be a list."),
        ({"lines": [{"quantity": 0}]}, "lines[0].quantity", "It must be at least 1. Count pairs."),
        ({"lines": [{"quantity": 10}]}, "lines[0].quantity", "It must be at most 9. Count pairs."),
        ({"lines": [{"quantity": 2.0}]}, "lines[0].quantity", "It must be a whole number. Count pairs."),
        ({"lines": [{"quantity": True}]}, "lines[0].quantity", "It must be a whole number. Count pairs."),
        ({"lines": [{"quantity": 2, "note": "x" * 1025}]}, "lines[0].note", "It has more than 1,024 characters."),
        ({"values": []}, "values", "It must be an object."),
    ],
)
def test_a_fault_is_described_in_words_for_people(changes, field, message):
    [fault] = refusal({**GOOD, **changes}).errors
    assert (fault.field, fault.message) == (field, message)


def test_unknown_members_are_named_by_the_topmost_path_and_once():
    ticket, ignored = read(
        nmae={"deep": {"er": 1}},
        lines=[{"quantity": 2, "colour": 1}, {"quantity": 4, "colour": 2, "size": 3}],
        values={"free": 1},
        free={"free": 1},
    )
    assert ignored == ("lines[].colour", "lines[].size", "nmae")
    assert (len(ticket.lines), bytes(ticket.free)) == (2, b'{"free":1}')


def test_of_very_many_unknown_members_some_are_named():
    _, ignored = read(**{f"x{number}": 1 for number in range(10_000)})
    assert ignored == tuple(f"x{number}" for number in range(11))


def test_what_is_no_json_behind_a_wrong_type_is_no_json():
    assert isinstance(refusal(b'{"kind":1,"external_id":tru}'), InvalidJson)


def test_a_fault_that_only_the_maker_finds_is_reported_too():
    def make(ticket: Ticket, _: tuple[str, ...]) -> None:
        raise invalid("kind", "TOGETHER", f"{ticket.kind} does not go with the rest.")

    for body in (GOOD, {**GOOD, "unknown": 1}):
        with pytest.raises(ValidationError, match="does not go with the rest"):
            READER.read(msgspec.json.encode(body), make)


def test_the_strict_type_forbids_unknown_members_at_every_level_and_is_otherwise_the_same():
    strict = forbid_unknown_fields(Ticket)
    assert issubclass(strict, Ticket)
    assert msgspec.json.decode(msgspec.json.encode(GOOD), type=strict).lines[0].quantity == 2
    for changes in ({"unknown": 1}, {"lines": [{"quantity": 2, "unknown": 1}]}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(msgspec.json.encode({**GOOD, **changes}), type=strict)
