"""Inference and interpretation of attribute values."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from regulars.catalog.model import (
    AttributeType,
    find_other_spellings,
    has_leading_zeros,
    infer_type,
    interpret,
    label_key,
    list_distinct,
)

TEXT, NUMBER, BOOLEAN, DATE, CURRENCY, ENUM = AttributeType


@pytest.mark.parametrize(
    ("value", "inferred"),
    [
        ("true", BOOLEAN), ("false", BOOLEAN), ("True", TEXT), ("TRUE", TEXT), ("yes", TEXT), (" true", TEXT),
        ("0", NUMBER), ("1", NUMBER), ("-12", NUMBER), ("12.50", NUMBER), ("007", NUMBER), ("9" * 2048, NUMBER),
        ("+1", TEXT), ("1.", TEXT), (".5", TEXT), ("1,5", TEXT), ("1e5", TEXT), ("1 000", TEXT), ("--1", TEXT), ("1\n", TEXT), ("١٢", TEXT), ("NaN", TEXT), ("-", TEXT),
        ("2024-02-29", DATE), ("2023-02-29", TEXT), ("2024-13-01", TEXT), ("0000-01-01", TEXT), ("20240229", NUMBER), ("2024-2-9", TEXT), ("29/02/2024", TEXT), ("2024-W09-4", TEXT), ("2024-02-29\n", TEXT),
        ("2024-02-29T10:00:00Z", DATE), ("2024-02-29T10:00:00.123456+02:00", DATE), ("2024-02-29T10:00:00", TEXT), ("2024-02-29T24:00:00Z", TEXT), ("2024-02-30T10:00:00Z", TEXT), ("0001-01-01T00:00:00+23:59", TEXT),
        ("", TEXT), ("gold", TEXT), ("EUR 5", TEXT), ("\U0001f9e3", TEXT),
    ],
)  # fmt: skip
def test_the_first_value_decides_the_type(value, inferred):
    assert infer_type(value) is inferred


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("loyalty_tier", "Loyalty tier"), ("loyaltyTier", "Loyalty tier"), ("VIP", "VIP"), ("size-EU", "Size EU"),
        ("code postal", "Code postal"), ("crm.größe", "Crm größe"), ("_", "_"),
    ],
)  # fmt: skip
def test_a_key_has_a_name_for_people(key, label):
    assert label_key(key) == label


@pytest.mark.parametrize(
    ("value", "is_code"),
    [("007", True), ("-01", True), ("00", True), ("01.5", True), ("0", False), ("0.5", False), ("10", False), ("abc", False), ("00a", False)],
)  # fmt: skip
def test_a_number_with_leading_zeros_is_probably_a_code(value, is_code):
    assert has_leading_zeros(value) is is_code


@pytest.mark.parametrize(
    ("declared", "value", "read"),
    [
        (TEXT, "12", "12"),
        (NUMBER, "12.50", Decimal("12.50")),
        (NUMBER, "twelve", None),
        (CURRENCY, "-3.20", Decimal("-3.20")),
        (CURRENCY, "3 EUR", None),
        (BOOLEAN, "true", True),
        (BOOLEAN, "false", False),
        (BOOLEAN, "1", None),
        (DATE, "2024-02-29", date(2024, 2, 29)),
        (DATE, "2024-02-29T10:00:00.1239+02:00", datetime(2024, 2, 29, 8, 0, 0, 123000, tzinfo=UTC)),
        (DATE, "12", None),
        (ENUM, "gold", "gold"),
        (ENUM, "bronze", None),
    ],
)
def test_a_value_is_read_as_its_type_says_or_not_at_all(declared, value, read):
    assert interpret(declared, value, allowed_values=("gold", "silver")) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [("GOLD", "Gold"), ("gold", "gold"), (" Gold ", "Gold"), ("Cafe\u0301", "café"), ("cafe", None), ("", None)],
)
def test_a_value_of_a_list_is_read_whatever_its_case_and_the_exact_spelling_first(value, read):
    assert interpret(ENUM, value, allowed_values=("Gold", "gold", "café")) == read


def test_spellings_of_one_value_are_one_choice():
    values = ("Gold", "Blue", "GOLD", "Cafe\u0301", "café", "blue ")
    assert list_distinct(values) == ("Gold", "Blue", "Cafe\u0301")
    assert find_other_spellings(values) == (("GOLD", "Gold"), ("café", "Cafe\u0301"), ("blue ", "Blue"))
