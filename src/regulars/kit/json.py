"""JSON in and out: msgspec does the work, and what it lets pass in fields it skips is caught here.

The checks before decoding are cheap gates over the raw bytes; only a body that looks suspicious is read a second time.
"""

import json
import re
from typing import Any, NoReturn, TypeVar

import msgspec

from regulars.kit.errors import FieldError, InvalidJson, ValidationError, invalid

DEPTH_MAX = 32
INTEGER_MAX = 2**53 - 1
STRING_CHARACTERS_MAX = 1024

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
encode = _encoder.encode

# A NUL or a surrogate written as an escape.
_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
# Numbers that may overflow a double have an exponent or hundreds of digits. With all digits mapped to one, both are
# found by a plain search, which is several times quicker than a pattern over the original.
_DIGITS_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_EXPONENT = b"0e"
_LARGE_EXPONENT = re.compile(rb"[0-9][eE]\+?[0-9]{3}")
DOUBLE_DIGITS_MAX = 308
_MANY_DIGITS = b"0" * (DOUBLE_DIGITS_MAX + 1)
_BRACKETS_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes, *, is_checked: bool = False) -> T:
    """Decode a request body, or raise the refusal it deserves; `is_checked` is for a part of one already checked."""
    if not is_checked:
        check_bytes(body)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise translate(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidJson(f"The body cannot be read as JSON: {error}.") from None


def check_bytes(body: bytes) -> None:
    """Refuse what must not stand anywhere in a document, unknown fields included."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            raise InvalidJson("The body is not valid UTF-8.") from None
    if b"\x00" in body:
        raise InvalidJson("The body has a raw NUL byte.")
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        _check_depth(body)
    if b"\\u" in body and _SUSPICIOUS_ESCAPE.search(body):
        _check_values(body)
    else:
        alike = body.translate(_DIGITS_ALIKE)
        if (_EXPONENT in alike and _LARGE_EXPONENT.search(body)) or _MANY_DIGITS in alike:
            _check_values(body)


def _check_depth(body: bytes) -> None:
    """Take the innermost brackets away, one level a time: a few passes in C, whatever a hostile body holds."""
    outside_strings = b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside_strings.translate(_BRACKETS_ALIKE, _NO_BRACKETS)
    for _ in range(DEPTH_MAX):
        left = brackets.replace(b"[]", b"")
        if not left:
            return
        if len(left) == len(brackets):
            break
        brackets = left
    raise InvalidJson(f"The body is nested deeper than {DEPTH_MAX} levels, or its brackets do not match.")


def _check_values(body: bytes) -> None:
    try:
        json.loads(
            body,
            object_pairs_hook=_check_pairs,
            parse_float=_check_float,
            parse_int=_check_integer,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"The body cannot be read as JSON: {error}.") from None


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    # Returning None drops the object once it is checked: only the strings in it and in its lists matter.
    for key, value in pairs:
        _check_string(key)
        _check_strings(value)


def _check_strings(value: Any) -> None:
    if isinstance(value, str):
        _check_string(value)
    elif isinstance(value, list):
        for item in value:
            _check_strings(item)


def _check_string(text: str) -> None:
    if "\x00" in text:
        raise invalid("", "FORBIDDEN_CHARACTER", "U+0000 is not allowed in any string.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson("A string has a lone surrogate.") from None


def _check_float(digits: str) -> None:
    if float(digits) in (float("inf"), float("-inf")):
        raise InvalidJson("A number is too large for a double.")


def _check_integer(digits: str) -> None:
    if len(digits) > DOUBLE_DIGITS_MAX:
        raise InvalidJson("A number is too large for a double.")


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not JSON.")


_MISSING = re.compile(r"Object missing required field `([^`]+)`(?: - at `\$\.?([^`]*)`)?")
_AT = re.compile(r"^(.*?)(?: - at `\$\.?([^`]*)`)?$", re.DOTALL)


def translate(error: msgspec.ValidationError) -> ValidationError:
    """Turn the decoder's sentence into a field, a stable code and a message."""
    text = str(error)
    missing = _MISSING.match(text)
    if missing:
        name, parent = missing.groups()
        field = f"{parent}.{name}" if parent else name
        return ValidationError(
            f"{field} is required.", errors=(FieldError(field, "REQUIRED", "This field is required."),)
        )
    match = _AT.match(text)
    message, field = (match[1], match[2] or "") if match else (text, "")
    field = field.replace("[...]", "")
    return invalid(field, _code_of(message), message + ".")


def _code_of(message: str) -> str:
    if "got `null`" in message:
        return "REQUIRED"
    if "got `" in message:
        return "WRONG_TYPE"
    if "of length" in message:
        return "LENGTH"
    if "Invalid enum value" in message:
        return "NOT_ALLOWED"
    if "matching regex" in message:
        return "FORMAT"
    return "OUT_OF_RANGE"
