"""What a declared column gives to a page, a file and a command."""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from regulars.lists.columns import HARMLESS, HIDDEN, Column, Columns, Head, PartlyMasked, Place
from regulars.lists.masking import hide_digits


class Person(NamedTuple):
    name: str | None
    number: str | None = "+33639984107"
    visits: int = 1_000
    at: datetime = datetime(2026, 11, 19, 8, 30, tzinfo=UTC)


COLUMNS = Columns[Person](
    Column("name", lambda it: it.name, head=Head("Name", "clip", 2)),
    Column("number", lambda it: PartlyMasked(it.number, hide_digits), head=Head("Number", "nowrap drop-3", 1)),
    Column("visits", lambda it: it.visits, HARMLESS, Head("Visits", "is-num drop-2", 3, is_plain=True)),
    Column("at", lambda it: it.at, HARMLESS, places=Place.FILE),
    Column("is_known", lambda it: it.name is not None, HARMLESS, places=Place.FILE | Place.COMMAND, json_name="known"),
)
ADA = Person("Ada")


@pytest.mark.parametrize(
    ("person", "sees_personal", "cells"),
    [
        (ADA, True, ["Ada", "+33639984107", "1000", "2026-11-19T08:30:00.000Z", "yes"]),
        (ADA, False, [HIDDEN, f"+33 {HIDDEN} 07", "1000", "2026-11-19T08:30:00.000Z", "yes"]),
        (Person(None, None), True, ["", "", "1000", "2026-11-19T08:30:00.000Z", "no"]),
        (Person(None, None), False, ["", "", "1000", "2026-11-19T08:30:00.000Z", "no"]),
        (Person("", "not a number"), False, ["", HIDDEN, "1000", "2026-11-19T08:30:00.000Z", "yes"]),
    ],
)
def test_a_column_is_masked_unless_it_is_declared_harmless(person, sees_personal, cells):
    assert COLUMNS.header() == ["name", "number", "visits", "at", "is_known"]
    assert COLUMNS.cells(person, sees_personal=sees_personal) == cells


@pytest.mark.parametrize("value", [0, False, 7, {"a": 1}, [1], datetime(2026, 1, 1, tzinfo=UTC)])
def test_a_value_of_any_type_is_masked(value):
    [column] = Columns[Person](Column("value", lambda _it: value)).columns
    assert column.read(ADA, sees_personal=False) == HIDDEN
    assert column.read(ADA, sees_personal=True) == value


def test_a_file_has_what_is_neither_text_nor_number_as_json():
    columns = Columns[Person](Column("after", lambda it: {"name": it.name}))
    assert columns.cells(ADA, sees_personal=True) == ['{"name":"Ada"}']


def test_a_command_prints_values_under_their_names_in_json():
    assert COLUMNS.as_data(ADA) == {"name": "Ada", "number": "+33639984107", "visits": 1000, "known": True}
    assert COLUMNS.header(Place.COMMAND) == ["name", "number", "visits", "is_known"]


def test_headings_stand_in_the_order_of_the_page_and_hide_with_their_cells():
    assert [(head.label, head.head_classes) for head, _ in COLUMNS.heads] == [
        ("Number", "drop-3"), ("Name", ""), ("Visits", "is-num drop-2"),
    ]  # fmt: skip
