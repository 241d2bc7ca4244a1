"""What must not stand anywhere in a body, in fields we know and in fields we skip, and what must not be refused."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from regulars.kit import json
from regulars.kit.body_reader import Reader
from regulars.kit.errors import ApiError, InvalidJson, ValidationError

# How many times the work of an honest body of the same length a hostile one may cause. Whatever looks at a part again
# for each of its parts takes hundreds of times as much.
TIMES_HONEST_MAX = 10
MIB = 1 << 20


class Body(msgspec.Struct):
    name: str = ""
    number: int = 0
    free: msgspec.Raw = msgspec.Raw()


READER: Reader[Body] = Reader(Body)
PLACES = {
    "a known field": b'{"name":%b}',
    "an unknown field": b'{"unknown":%b}',
    "a raw field": b'{"free":%b}',
    "a list in an object in an unknown field": b'{"unknown":{"a":[1,[%b]]}}',
    "an earlier value of a repeated key": b'{"name":%b,"name":"x"}',
}


def decode(body: bytes) -> Body:
    return READER.read(body, lambda sent, _: sent)


@pytest.fixture(params=PLACES.values(), ids=PLACES.keys())
def place(request) -> bytes:
    return request.param


@pytest.mark.parametrize("escape", [b'"\\u0000"', b'"a\\u0000b"', b'"\\\\\\u0000"', b'{"\\u0000":1}'])
def test_an_escaped_nul_is_refused_everywhere(place, escape):
    with pytest.raises(ValidationError):
        decode(place % escape)


@pytest.mark.parametrize(
    "text",
    [
        b'"\x00"',
        b'"\\ud800"',
        b'"\\uD83D"',
        b'"\\ude00\\ud83d"',
        b'"\\ud83dx\\ude00"',
        b'{"\\udfff":1}',
        b'"\xff"',
        b'"\xc0\xaf"',  # overlong
        b'"\xed\xa0\x80"',  # a surrogate in UTF-8
        b'"\xf4\x90\x80\x80"',  # beyond Unicode
        b'"\xe2\x82"',
    ],
)
def test_what_is_no_text_is_refused_everywhere(place, text):
    with pytest.raises(InvalidJson):
        decode(place % text)


@pytest.mark.parametrize(
    "number", [b"1e400", b"-1E+999", b"1.5e309", b"9" * 401, b"-" + b"9" * 5000, b"9" * 310 + b".5"]
)
def test_a_number_beyond_a_double_is_refused_everywhere(place, number):
    with pytest.raises((InvalidJson, ValidationError)):
        decode(place % number)


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity", b"-Infinity", b"nan", b"1e400,NaN"])
def test_constants_that_are_not_json_are_refused_everywhere(place, constant):
    with pytest.raises(InvalidJson):
        decode(place % constant)


FINE: dict[bytes, Any] = {
    b'"\\u00e9"': "é",
    b'"\\uD83D\\uDE00"': "😀",
    b'"\\ud83d\\ude00 \\u0041"': "😀 A",
    b'"\\\\u0000"': "\\u0000",
    b'"\\\\\\\\ud800"': "\\\\ud800",
    b'"\\u0001\\u001f"': "\x01\x1f",
    '"é😀"'.encode(): "é😀",
    b'"1e400"': "1e400",
    b'"' + b"9" * 400 + b'"': "9" * 400,
    b'"[[[[{{{{\\"[[["': '[[[[{{{{"[[[',
}


@pytest.mark.parametrize(("text", "value"), FINE.items())
def test_what_only_looks_dangerous_is_read(text, value):
    assert decode(b'{"name":%b,"unknown":%b,"free":%b}' % (text, text, text)).name == value


@pytest.mark.parametrize("number", [b"1e2", b"1.5E-400", b"0." + b"0" * 400 + b"1", b"1e308", b"9" * 300])
def test_large_and_small_numbers_that_a_double_holds_are_read(number):
    assert bytes(decode(b'{"unknown":%b,"free":%b}' % (number, number)).free) == number


def work_s(body: bytes) -> float:
    """The processor time that reading it takes, whatever becomes of it: the least of three, for what disturbs."""
    taken = []
    for _ in range(3):
        started = time.process_time()
        with contextlib.suppress(ApiError):
            decode(body)
        taken.append(time.process_time() - started)
    return min(taken)


@pytest.fixture(scope="module")
def honest_work_s() -> Callable[[int], float]:
    """The same for an honest body of so many bytes, and of a MiB at least."""
    body = b'{"unknown":[%b]}' % b",".join([b'{"a":"b","c":[1,2]}'] * (MIB // 20))
    per_byte_s = work_s(body) / len(body)
    return lambda length: per_byte_s * max(length, MIB)


def nested(depth: int) -> bytes:
    """An object with so many levels, itself included."""
    return b'{"unknown":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_thirty_two_levels_are_read_and_brackets_in_strings_do_not_count():
    decode(nested(32))
    decode(b'{"name":"%b","unknown":[%b]}' % (b"[{" * 500, b",".join([b"{}"] * 500)))


@pytest.mark.parametrize("depth", [33, 1_000, 100_000])
def test_deeper_bodies_are_refused_quickly(depth, honest_work_s):
    bodies = [nested(depth), b"[" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b'["\\"",' * depth]
    for body in bodies:
        with pytest.raises(InvalidJson):
            decode(body)
        assert work_s(body) < TIMES_HONEST_MAX * honest_work_s(len(body))


@pytest.mark.parametrize(
    "text", [b'"]["', b'"\\""', b'"\\\\"', b'"\\\\\\"]"', b'"\\\\\\\\"', b'"\\n\\\\n{"', b'"{\\u005b"']
)
def test_strings_with_escapes_and_brackets_do_not_hide_or_add_levels(text):
    """Between strings like these, 31 levels below the object are read and 32 are not."""
    for depth, is_fine in ((31, True), (32, False)):
        body = b'{"a":%b,"b":%b%b%b,"c":%b}' % (text, b"[" * depth, text, b"]" * depth, text)
        if is_fine:
            decode(body)
        else:
            with pytest.raises(InvalidJson, match="nested deeper"):
                decode(body)


HOSTILE = {
    "a string of escaped quotes that never ends": b"[]," * 40 + b'"' + b'\\"' * 500_000,
    "the same with half an escape at the end": b"[]," * 40 + b'"' + b'\\"' * 500_000 + b"\\",
    "nothing but quotes": b"[]," * 40 + b'"' * 1_000_000,
    "nothing but brackets": b"[]" * 4_000_000,
    "nothing but opening brackets": b"[" * 8_000_000,
    "nothing but short strings": b"[" + b'"",' * 2_000_000 + b"[]," * 40,
    "a hundred thousand unknown keys": b"{" + b",".join(b'"k%d":1e1' % number for number in range(100_000)) + b"}",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_megabyte_takes_no_longer_than_an_honest_one(body, honest_work_s):
    assert work_s(body) < TIMES_HONEST_MAX * honest_work_s(len(body))


def test_the_last_of_repeated_keys_counts():
    assert decode(b'{"name":"first","name":"last"}').name == "last"


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        (b"[]", "", "WRONG_TYPE"),
        (b"null", "", "REQUIRED"),
        (b'{"name":1}', "name", "WRONG_TYPE"),
        (b'{"name":null}', "name", "REQUIRED"),
        (b'{"number":"1"}', "number", "WRONG_TYPE"),
        (b'{"number":1.5}', "number", "WRONG_TYPE"),
    ],
)
def test_a_wrong_type_names_its_field_and_a_stable_code(body, field, code):
    with pytest.raises(ValidationError) as caught:
        decode(body)
    assert [(error.field, error.code) for error in caught.value.errors] == [(field, code)]


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"[[\\"]]","b":' + b"[" * 5000 + b'"\\ud800",{"x":1}' + b"]" * 5000 + b',"c":[1,{"d":"\\\\"}]}',
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'["\\udc00", "\\\\ud800", "\\ud83d\\ude00"]',
    ],
    ids=["deep in the middle", "deep objects", "surrogates"],
)
def test_without_its_traps_a_document_is_read_and_everything_stands_where_it_stood(body):
    readable = json.make_decodable(body)
    msgspec.json.decode(readable)
    assert len(readable) == len(body)
    assert all(before == after or after in b" \\u0041" for before, after in zip(body, readable, strict=True))
