"""Cursors: read back by their own list, and by nothing else."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regulars.kit.errors import InvalidCursor
from regulars.kit.pagination import CURSOR_CHARACTERS_MAX, read_cursor, scope_of, write_cursor

secrets = st.binary(min_size=32, max_size=32)
positions = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=3).map(tuple)
scopes = st.builds(
    scope_of,
    st.sampled_from(["stores", "profiles", "sales-events"]),
    st.dictionaries(st.sampled_from(["store_id", "type", "limit"]), st.text(max_size=10)),
)


@given(secrets, scopes, positions)
def test_a_cursor_is_read_back_as_the_position_it_was_made_of(
    secret: bytes, scope: str, position: tuple[str, ...]
) -> None:
    cursor = write_cursor(secret, scope, position)
    assume(len(cursor) <= CURSOR_CHARACTERS_MAX)
    assert read_cursor(secret, scope, cursor) == position
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?# ")


@given(secrets, scopes, positions, st.data())
def test_a_changed_cursor_is_refused(secret: bytes, scope: str, position: tuple[str, ...], data: st.DataObject) -> None:
    cursor = write_cursor(secret, scope, position)
    place = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("ABCDEFGHabcdefgh0123456789-_"))
    changed = cursor[:place] + other + cursor[place + 1 :]
    assume(changed != cursor)
    for bad in (changed, cursor[:place], cursor + other, cursor + "="):
        with pytest.raises(InvalidCursor):
            read_cursor(secret, scope, bad)


@given(secrets, secrets, scopes, scopes, positions)
def test_a_cursor_belongs_to_one_organization_and_one_list(
    secret: bytes, other_secret: bytes, scope: str, other_scope: str, position: tuple[str, ...]
) -> None:
    cursor = write_cursor(secret, scope, position)
    if other_secret != secret:
        with pytest.raises(InvalidCursor):
            read_cursor(other_secret, scope, cursor)
    if other_scope != scope:
        with pytest.raises(InvalidCursor):
            read_cursor(secret, other_scope, cursor)


@given(secrets, st.text(max_size=200) | st.text("ABCabc019-_", max_size=200))
def test_any_text_is_refused_quietly(secret: bytes, text: str) -> None:
    with pytest.raises(InvalidCursor):
        read_cursor(secret, "stores", text)
