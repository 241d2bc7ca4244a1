import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.texts.sms_encoding import Encoding, measure, replace_unicode


@pytest.mark.parametrize(
    ("text", "encoding", "parts", "left"),
    [
        ("", Encoding.GSM_7, 0, 160),
        ("a" * 160, Encoding.GSM_7, 1, 0),
        ("a" * 161, Encoding.GSM_7, 2, 145),
        ("a" * 306, Encoding.GSM_7, 2, 0),
        ("a" * 307, Encoding.GSM_7, 3, 152),
        ("€" * 80, Encoding.GSM_7, 1, 0),
        ("€" * 81, Encoding.GSM_7, 2, 143),
        ("déjà vu à Zürich", Encoding.GSM_7, 1, 144),
        ("ê" * 70, Encoding.UCS_2, 1, 0),
        ("ê" * 71, Encoding.UCS_2, 2, 63),
        ("😀" * 35, Encoding.UCS_2, 1, 0),
        ("😀" * 36, Encoding.UCS_2, 2, 61),
    ],
)
def test_it_counts_parts_as_networks_do(text, encoding, parts, left):
    measured = measure(text)
    assert (measured.encoding, measured.parts, measured.left) == (encoding, parts, left)


def test_no_character_is_split_between_two_parts():
    # 152 septets and then an escaped character of two: it begins the second part.
    assert measure("a" * 152 + "€" + "a" * 151).parts == 2
    assert measure("a" * 152 + "€" + "a" * 152).parts == 3


def test_it_names_the_character_that_forces_unicode_and_what_could_stand_there():
    measured = measure("C’est l’été …")
    assert [(it.character, it.position, it.name, it.replacement) for it in measured.forcing] == [
        ("’", 1, "Right single quotation mark", "'"),
        ("…", 12, "Horizontal ellipsis", "..."),
    ]
    assert replace_unicode("C’est l’été … œuvre ê 中") == "C'est l'été ... oeuvre e 中"


@given(st.text(max_size=400))
def test_a_plainer_text_never_costs_more_and_is_stable(text):
    plainer = replace_unicode(text)
    assert replace_unicode(plainer) == plainer
    if measure(plainer).encoding is Encoding.GSM_7:
        assert measure(plainer).forcing == ()


@given(st.text(max_size=900))
def test_parts_hold_the_whole_text(text):
    measured = measure(text)
    alone, joined = (160, 153) if measured.encoding is Encoding.GSM_7 else (70, 67)
    capacity = alone if measured.parts <= 1 else joined * measured.parts
    assert measured.length <= capacity
    assert (measured.parts == 0) is (text == "")
