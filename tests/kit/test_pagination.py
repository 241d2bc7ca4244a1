import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.kit.errors import InvalidCursor, ValidationError
from regulars.kit.pagination import read_cursor, read_limit, scope_of, write_cursor

SECRET = b"s" * 32
SCOPE = scope_of("stores", {"type": "PURCHASE"})


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ({}, 50),
        ({"limit": "1"}, 1),
        ({"limit": "200"}, 200),
        ({"limit": "201"}, 200),
        ({"limit": "9" * 5000}, 200),
        ({"limit": "007"}, 7),
    ],
)
def test_the_page_size_is_50_unless_asked_and_never_over_200(query, limit):
    assert read_limit(query) == limit


@pytest.mark.parametrize("text", ["0", "-1", "+1", "abc", "1.5", "", " 1", "1_0", "٣", "²", "0" * 5000])
def test_another_page_size_is_refused(text):
    with pytest.raises(ValidationError) as caught:
        read_limit({"limit": text})
    assert caught.value.errors[0].field == "limit"


@pytest.mark.parametrize("position", [(), ("a",), ("prof_x", "2024-05-01T00:00:00.000Z"), ("é\x00😀\n",)])
def test_a_cursor_reads_back_and_fits_a_url(position):
    cursor = write_cursor(SECRET, SCOPE, position)
    assert read_cursor(SECRET, SCOPE, cursor) == position
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?# ")


def test_a_cursor_is_bound_to_its_list_its_filters_and_its_organization():
    cursor = write_cursor(SECRET, SCOPE, ("x",))
    others = [
        (b"t" * 32, SCOPE),
        (SECRET, scope_of("profiles", {"type": "PURCHASE"})),
        (SECRET, scope_of("stores", {"type": "RETURN"})),
        (SECRET, scope_of("stores", {})),
    ]
    for secret, scope in others:
        with pytest.raises(InvalidCursor):
            read_cursor(secret, scope, cursor)


def test_the_scope_knows_neither_the_order_of_the_filters_nor_the_page():
    one = scope_of("sales", {"type": "PURCHASE", "currency": "EUR", "limit": "3", "cursor": "x"})
    assert one == scope_of("sales", {"currency": "EUR", "type": "PURCHASE"})
    assert scope_of("a", {"b": "c"}) != scope_of("a", {"b,c": ""})


def test_every_change_of_a_character_is_noticed():
    cursor = write_cursor(SECRET, SCOPE, ("prof_01h455vb4pex5vsknk084sn02q",))
    for place in range(len(cursor)):
        for replacement in "Aa0_":
            changed = cursor[:place] + replacement + cursor[place + 1 :]
            if changed != cursor:
                with pytest.raises(InvalidCursor):
                    read_cursor(SECRET, SCOPE, changed)


GARBAGE = ["", "x", "!", "é", "====", "A" * 1025, "A" * 1024, base64.urlsafe_b64encode(b"x" * 16 + b"[" * 500).decode()]


def test_garbage_a_cut_and_another_spelling_are_refused():
    cursor = write_cursor(SECRET, SCOPE, ("x",))
    padded = cursor + "=" * (-len(cursor) % 4) if len(cursor) % 4 else cursor + "===="
    for wrong in [*GARBAGE, cursor[:-1], cursor[1:], cursor + "A", padded, f" {cursor}", f"{cursor}\n"]:
        with pytest.raises(InvalidCursor):
            read_cursor(SECRET, SCOPE, wrong)


@given(st.text(max_size=200) | st.text("ABCabc019-_", max_size=200))
def test_any_text_is_refused_quietly(text):
    with pytest.raises(InvalidCursor):
        read_cursor(SECRET, SCOPE, text)
