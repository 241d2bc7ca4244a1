"""Check the raw bytes of a JSON body for nesting, numbers and characters that we refuse; msgspec decodes it afterwards
and does not look into unknown fields.

The checks are cheap searches in the bytes; only a suspicious body is parsed to find the wrong value.
"""

import json
import re
from array import array
from itertools import accumulate, chain
from operator import add
from typing import Any, NoReturn, Self

import msgspec

from regulars.kit.errors import InvalidJson, invalid

DEPTH_MAX = 32
INTEGER_MAX = 2**53 - 1
STRING_CHARACTERS_MAX = 1024


class SpelledNumber(float):
    """A number that remembers how it is written in the document, and is encoded so."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def _encode_as_sent(number: object) -> msgspec.Raw:
    if not isinstance(number, SpelledNumber):
        raise NotImplementedError  # as msgspec asks, which then names the type in its error
    return msgspec.Raw(number.text.encode())


_encoder = msgspec.json.Encoder(enc_hook=_encode_as_sent)
encode = _encoder.encode

# A NUL or a surrogate written as an escape.
_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
# Numbers that may overflow a double have an exponent or hundreds of digits. With all digits replaced by 0, a plain
# search finds both, several times quicker than a regular expression over the original.
_NORMALIZE_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
_EXPONENT = b"0e"
_LARGE_EXPONENT = re.compile(rb"[0-9][eE]\+?[0-9]{3}")
DOUBLE_DIGITS_MAX = 308
# An integer is stored as it was sent, even if a double cannot represent it.
INTEGER_DIGITS_MAX = 400
_MANY_DIGITS = b"0" * (DOUBLE_DIGITS_MAX + 1)
_NORMALIZE_BRACKETS = bytes.maketrans(b"{}", b"[]")
# By how much each byte changes the nesting depth; 255 is -1 as a signed byte.
_DEPTH_CHANGES = bytes([{ord("["): 1, ord("{"): 1, ord("]"): 255, ord("}"): 255}.get(byte, 0) for byte in range(256)])
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
# A decodable copy may be nested deeper than is allowed, so that a document that is too deep is still refused.
_READABLE_DEPTH = 2 * DEPTH_MAX
_BLANK = ord(" ")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_bytes(body: bytes) -> None:
    """Refuse bytes that are not allowed anywhere in a document, unknown fields included."""
    check_text(body)
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        _check_depth(body)
    if b"\\u" in body and _SUSPICIOUS_ESCAPE.search(body):
        _check_values(body)
    else:
        normalized = body.translate(_NORMALIZE_DIGITS)
        if (_EXPONENT in normalized and _LARGE_EXPONENT.search(body)) or _MANY_DIGITS in normalized:
            _check_values(body)


def check_text(body: bytes) -> None:
    """Refuse bytes that are not UTF-8 text, and so not JSON."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            raise InvalidJson("The body is not valid UTF-8.") from None
    if b"\x00" in body:
        raise InvalidJson("The body has a raw NUL byte.")


def make_decodable(body: bytes) -> bytes:
    """Return a copy of the same length without deep nesting and lone surrogates, on which a recursive decoder fails.

    `depths` counts each bracket twice, at its own byte and at the next: it is 2n inside nesting level n. Each pass over
    the bytes runs in C, so that a large body costs little.
    """
    parts = body.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')
    parts[1::2] = [bytes(len(text)) for text in parts[1::2]]
    changes = array("b", b'"'.join(parts).translate(_DEPTH_CHANGES))
    depths = accumulate(map(add, changes, chain((0,), changes)))
    shallow = bytes([byte if depth < 2 * _READABLE_DEPTH else _BLANK for byte, depth in zip(body, depths, strict=True)])
    return _SURROGATE.sub(b"\\\\u0041", shallow)


def _check_depth(body: bytes) -> None:
    """Remove the innermost brackets, one level per pass; each pass runs in C, so that a hostile body costs little."""
    outside_strings = b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside_strings.translate(_NORMALIZE_BRACKETS, _NO_BRACKETS)
    for _ in range(DEPTH_MAX):
        reduced = brackets.replace(b"[]", b"")
        if not reduced:
            return
        if len(reduced) == len(brackets):
            break
        brackets = reduced
    raise InvalidJson(f"The body is nested deeper than {DEPTH_MAX} levels, or its brackets do not match.")


def _check_values(body: bytes) -> None:
    try:
        document = json.loads(
            body,
            # If a name occurs twice, both values are checked.
            object_pairs_hook=_Members,
            parse_float=_check_float,
            parse_int=_check_integer,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"The body cannot be read as JSON: {error}.") from None
    _check_strings(document, "")


class _Members(list[tuple[str, Any]]):
    """The members of an object, in their order and with duplicate names."""


def _check_strings(value: Any, field: str) -> None:
    if isinstance(value, str):
        _check_string(value, field)
    elif isinstance(value, _Members):
        for name, member in value:
            _check_string(name, field)
            _check_strings(member, f"{field}.{name}" if field else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_strings(item, f"{field}[{index}]")


def _check_string(text: str, field: str) -> None:
    if "\x00" in text:
        raise invalid(field, "FORBIDDEN_CHARACTER", "U+0000 is not allowed in any text.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson("A string has a lone surrogate.") from None


def _check_float(digits: str) -> None:
    if float(digits) in (float("inf"), float("-inf")):
        raise InvalidJson("A number is too large for a double.")


def _check_integer(digits: str) -> None:
    if len(digits.lstrip("-")) > INTEGER_DIGITS_MAX:
        raise InvalidJson(f"A number has more than {INTEGER_DIGITS_MAX} digits.")


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not JSON.")
