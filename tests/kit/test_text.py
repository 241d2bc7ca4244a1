import pytest

from regulars.kit.errors import ReservedExternalId, ValidationError
from regulars.kit.text import check_external_id, check_reference

WRONG = {
    "": "BLANK",
    " ": "BLANK",
    "\u3000\t": "BLANK",
    "x" * 256: "LENGTH",
    "é" * 256: "LENGTH",
    " x": "WHITE_SPACE",
    "x ": "WHITE_SPACE",
    "x\n": "WHITE_SPACE",
    "\u2003x": "WHITE_SPACE",
    "a\tb": "FORBIDDEN_CHARACTER",
    "a\x00b": "FORBIDDEN_CHARACTER",
    "a\x1bb": "FORBIDDEN_CHARACTER",
    "a\x7fb": "FORBIDDEN_CHARACTER",
    "a\x80b": "FORBIDDEN_CHARACTER",
    "a\x9fé": "FORBIDDEN_CHARACTER",
}
FINE = [
    "x",
    "x" * 255,
    "😀" * 255,
    "e\u0301",
    "é",
    "a/b",
    "a%2Fb",
    "a:b",
    "a b",
    "..",
    "+33",
    "%",
    "a\u00a0b",
    "a\u200bb",
]


@pytest.mark.parametrize(("text", "code"), WRONG.items())
def test_it_says_what_is_wrong_with_an_id(text, code):
    for check in (check_external_id, check_reference):
        with pytest.raises(ValidationError) as caught:
            check(text, field="store_id")
        [error] = caught.value.errors
        assert (error.field, error.code) == ("store_id", code)


@pytest.mark.parametrize("text", FINE)
def test_it_takes_an_id_as_it_is(text):
    assert check_external_id(text) == text
    assert check_reference(text, field="profile_id") == text


@pytest.mark.parametrize("text", ["prof_", "prof_x", "sub_", "store_9", "evt_é"])
def test_a_reserved_prefix_is_refused_in_an_external_id_and_fine_in_a_reference(text):
    with pytest.raises(ReservedExternalId) as caught:
        check_external_id(text)
    assert caught.value.errors[0].field == "external_id"
    assert check_reference(text, field="profile_id") == text


@pytest.mark.parametrize("text", ["PROF_x", "profile_1", "Sub_1", "stores_1", "xevt_1"])
def test_what_only_resembles_a_prefix_is_an_external_id(text):
    assert check_external_id(text) == text
