"""The header that names what of a body was ignored: paths, never values, and nothing that could split the answer."""

import pytest

from regulars.http.request import ignored_header


def named(*paths: str) -> str:
    name, value = ignored_header(paths)
    assert name == b"x-ignored-fields"
    return value.decode("ascii")


def test_it_names_paths_and_after_ten_only_that_there_are_more():
    assert named("nmae", "line_items[].colour") == "nmae, line_items[].colour"
    assert named(*"abcdefghij") == "a, b, c, d, e, f, g, h, i, j"
    assert named(*"abcdefghijk") == "a, b, c, d, e, f, g, h, i, j, ..."


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a\r\nSet-Cookie: x", "a%0D%0ASet-Cookie:%20x"),
        ("a,b", "a%2Cb"),
        ("50%", "50%25"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("", '""'),
    ],
)
def test_whatever_is_not_visible_ascii_is_percent_encoded(path, shown):
    assert named(path) == shown


@pytest.mark.parametrize("path", ["x" * 1000, "é" * 1000, "x" * 62 + "é", "x" * 63 + "é", "x" * 61 + "é"])
def test_a_name_is_cut_at_64_characters_and_never_inside_a_code(path):
    shown = named(path)
    assert 61 < len(shown) <= 64
    assert "%" not in shown[-2:]
    assert len(named(*[path] * 20)) < 1024
