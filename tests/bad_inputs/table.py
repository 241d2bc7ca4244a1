"""The table of bad inputs: what is sent, to which operations, and the refusal it must get.

`V` is 400 VALIDATION_ERROR and `N` is 400 INVALID_JSON. A row that may get either says so.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support import samples

V = "VALIDATION_ERROR"
N = "INVALID_JSON"
RESERVED = "RESERVED_EXTERNAL_ID"
PHONE = "INVALID_PHONE_NUMBER"
FUTURE_SALE = "OCCURRED_AT_IN_FUTURE"
FUTURE_CONSENT = "CONSENTED_AT_IN_FUTURE"
CURSOR = "INVALID_CURSOR"
NO_STORE = "STORE_NOT_FOUND"
NO_PROFILE = "PROFILE_NOT_FOUND"
MISSING = object()

LARGE = 2**53
FUTURE = "2999-01-01T00:00:00Z"


@dataclass(frozen=True)
class Row:
    """Put `value` at `where` in a valid body (MISSING takes away a member that is required) and expect one of the codes."""

    where: str
    value: Any
    codes: tuple[str, ...] = (V,)

    @property
    def name(self) -> str:
        shown = "missing" if self.value is MISSING else json.dumps(self.value)
        return f"{self.where}={shown[:40]}"


def rows(where: str, *values: Any, codes: tuple[str, ...] = (V,)) -> list[Row]:
    return [Row(where, value, codes) for value in values]


NOT_STRINGS: tuple[Any, ...] = (1, 1.5, True, [], {}, ["a"])
NOT_INTEGERS: tuple[Any, ...] = ("100", 1.5, True, [], {}, LARGE, 2**63, 2**64, -LARGE, 1e16, -1e300, 10**399)
BAD_TIMES: tuple[Any, ...] = (
    "2024-05-01T12:00:00",
    "2024-05-01",
    "2024-02-30T00:00:00Z",
    "2024-05-01T12:00",
    "2024-05-01T12:00:61Z",
    "2024-05-01T24:00:01Z",
    "2024-05-01T12:00:00+2400",
    "2024-05-01T12:00:00+99:00",
    "2024-05-01T12:00:00+01:60",
    "2024-05-01T12:00:00 +01:00",
    "2024-05-01T12:00:00.Z",
    "0000-05-01T12:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2024-05-01T12:00:00Z\n",
    "٢٠٢٤-05-01T12:00:00Z",
    "now",
    "",
    1714564800,
    None,
)

BAD_IDS = [
    *rows("external_id", MISSING, None, "", " ", "\t", "x" * 256, "🧣" * 256, 7, ["a"], {}, True, " x", "x ", "a\nb"),
    *rows("external_id", "a\u007fb", "a\u0085b", "\u00a0x"),
    *rows("external_id", "prof_x", "sub_", "store_9", "evt_01h455vb4pex5vsknk084sn02q", codes=(RESERVED,)),
]

BAD_ATTRIBUTES = [
    *rows("attributes", [1], [[]], "x", 1, True, [["a", "b"]]),
    *rows("attributes", {"a": 1}, {"a": True}, {"a": 1.5}, {"a": []}, {"a": {}}, {"a": {"b": "c"}}, {"a": ["b"]}),
    *rows("attributes", {f"k{number}": "v" for number in range(501)}, {"k": "v" * 2049}, {"": "v"}),
    *rows("attributes", {"k" * 129: "v"}, {"k" * 129: None}),
]

PROFILE_ROWS = [
    *BAD_IDS,
    *BAD_ATTRIBUTES,
    *rows("phone_number", *NOT_STRINGS, "1" * 1025),
    *rows("first_name", *NOT_STRINGS, "x" * 1025),
    *rows("last_name", *NOT_STRINGS, "x" * 1025),
]

STORE_ROWS = [
    *BAD_IDS,
    *rows("name", *NOT_STRINGS, "x" * 1025),
    *rows("address", "x", 1, [], True, {}),
    *[
        Row(f"address.{name}", value)
        for name in ("address_line1", "postal_code", "locality")
        for value in (MISSING, None, "", 7, "x" * 1025)
    ],
    *rows("address.country_code", MISSING, None, "", "F", "XX", "FRA", 33, "F\u0130", "\uff26\uff32"),
    # The second and third are no codes of a country; the letters of the others become Latin as capitals.
    *rows("address.country_code", "F ", "UK", "XK", "ß", "ﬁ", "ıs", "ſe"),
    *rows("address.address_line2", 7, "x" * 1025, []),
    *rows("address.administrative_area1", 7, "x" * 1025),
    *rows("address.administrative_area2", 7, "x" * 1025),
]

BAD_NUMBERS = (
    "0612345678",
    "33612345678",
    "+33",
    "+336",
    "+٣٣٦١٢٣٤٥٦٧٨",
    "+33612345678\n",
    " +33612345678",
    "＋33612345678",
    "tel:+33612345678",
    "+33612345678 ext 5",
    "+33612345678;ext=5",
    "+12345678901234567890",
    "+",
    "",
    "call me",
    "+33 6 12 34 56 78 x5",
    "+" + "1" * 60,
)

OPT_IN_ROWS = [
    *rows("phone_number", MISSING, None, *NOT_STRINGS),
    *rows("phone_number", *BAD_NUMBERS, codes=(PHONE, V)),
    *rows("consent_source", MISSING, None, "", "loyalty_program", "FAX", 1, []),
    *rows("consented_at", MISSING, *BAD_TIMES),
    Row("consented_at", FUTURE, (FUTURE_CONSENT,)),
    *rows("profile_id", "", " ", 7, [], "x" * 256),
    *rows("profile_id", "nobody", "prof_x", "sub_x", codes=(NO_PROFILE,)),
    *rows("store_id", "", " ", 7, [], "x" * 256),
    *rows("store_id", "nowhere", "store_x", "prof_x", codes=(NO_STORE,)),
    # Possible, but only inside its own area.
    *rows("phone_number", "+1 5551234", "+1-555-1234", codes=(PHONE,)),
    *rows("consent_proof", "x", 1, [], True),
    *rows(
        "consent_proof.terms_url",
        "javascript:alert(1)",
        "ftp://x.example",
        "x",
        "",
        7,
        "https://",
        "http://x y.example",
        "https://shop.example\n",
        "https://shop.example/" + "x" * 1004,
    ),
    *rows("consent_proof.terms_version", 7, [], "x" * 1025),
    *rows("consent_proof.source_text", 7, [], "x" * 10_001),
]

# A withdrawal is understood wherever a profile's number would be.
UNDERSTOOD_TO_WITHDRAW = ("+٣٣٦١٢٣٤٥٦٧٨", "+33612345678\n", " +33612345678")

OPT_OUT_ROWS = [
    *rows("phone_number", MISSING, None, *NOT_STRINGS),
    *rows(
        "phone_number", *[number for number in BAD_NUMBERS if number not in UNDERSTOOD_TO_WITHDRAW], codes=(PHONE, V)
    ),
    *rows("phone_number", "00", "00336", "x" * 1025, codes=(PHONE, V)),
    *rows("unsubscribed_at", *[value for value in BAD_TIMES if value is not None], FUTURE),
    *rows("profile_id", "", " ", 7, [], "x" * 256),
    *rows("profile_id", "nobody", "prof_x", codes=(NO_PROFILE,)),
    *rows("reason", 7, [], "x" * 1025),
    *rows("source", 7, [], "x" * 1025),
]

SALE_ROWS = [
    *BAD_IDS,
    *rows("type", MISSING, None, "purchase", "REFUND", "", 1, []),
    *rows("occurred_at", MISSING, *BAD_TIMES),
    *rows("occurred_at", FUTURE, "9999-12-31T23:59:59Z", codes=(FUTURE_SALE,)),
    *rows("store_id", MISSING, None, "", " ", 7, [], "x" * 256, " x"),
    *rows("store_id", "nowhere", "prof_01h455vb4pex5vsknk084sn02q", "store_x", codes=(NO_STORE,)),
    *rows("profile_id", "", " ", 7, [], {}, "x" * 256),
    *rows("profile_id", "prof_x", "sub_x", "evt_1", "store_1", codes=(NO_PROFILE,)),
    *rows("currency", MISSING, None, "eur", "JPY", "", 978),
    *rows("total_amount_cents", MISSING, None, *NOT_INTEGERS, -1),
    *rows("total_discount_cents", MISSING, None, *NOT_INTEGERS, -1),
    *rows("total_tax_cents", *NOT_INTEGERS),
    *rows("source", *NOT_STRINGS, "x" * 1025),
    *rows("line_items", MISSING, None, [], {}, "x", 1, [None], [1], [[]], [{"quantity": 1, "total_price_cents": 1}] * 1001),
    *rows("line_items.0.quantity", MISSING, None, "1", 0, 0.0, True, [], 1e308, 1e9, -1e9),
    *rows("line_items.0.total_price_cents", MISSING, None, *NOT_INTEGERS),
    *rows("line_items.0.unit_price_cents", *NOT_INTEGERS),
    *rows("line_items.0.discount_cents", *NOT_INTEGERS),
    *rows("line_items.0.tax_cents", *NOT_INTEGERS),
    *rows("line_items.0.unit", 7, [], "x" * 33),
    *rows("line_items.0.external_id", 7, [], "x" * 1025),
    *rows("line_items.0.product", "x", 1, [], True),
    *rows("line_items.0.product.external_id", 7, [], "x" * 1025),
    *rows("line_items.0.product.name", 7, [], "x" * 1025),
    *rows("line_items.0.product.properties", "x", 1, [1], {"k": []}, {"k": {}}, {"k": None}, {f"k{n}": 1 for n in range(51)}),
    *rows("line_items.0.product.properties", {"k": "x" * (4097 - len('{"k":""}'))}),
    *[Row(name, value) for name in ("payments", "loyalty", "metadata") for value in ("x", 1, True, {"k": "x" * 17_000})],
]  # fmt: skip

BATCH_ROWS = rows("items", MISSING, None, {}, "x", 1, [], [{}] * 501)


@dataclass(frozen=True)
class Endpoint:
    """A write: how to call it validly, and what to break."""

    method: str
    path: str
    body: Callable[[str], Any]
    rows: list[Row]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


STORE_CODE, CUSTOMER = "bad-inputs-store", "bad-inputs-customer"

WRITES = [
    Endpoint("POST", "/v1/profiles", lambda _: samples.profile(), PROFILE_ROWS),
    Endpoint("POST", "/v1/profiles/batch", lambda _: {"items": [samples.profile()]}, BATCH_ROWS),
    Endpoint(
        "POST", "/v1/profiles/{profile_id}/attributes", lambda _: {"attributes": {"a": "b"}}, [*BAD_ATTRIBUTES, Row("a", 1)]
    ),
    Endpoint("POST", "/v1/stores", lambda _: samples.store(), STORE_ROWS),
    Endpoint("POST", "/v1/subscriptions/opt-in", lambda _: samples.opt_in(), OPT_IN_ROWS),
    Endpoint("POST", "/v1/subscriptions/opt-out", lambda _: {"phone_number": samples.phone()}, OPT_OUT_ROWS),
    Endpoint(
        "POST",
        "/v1/subscriptions/check",
        lambda _: {"items": [{"phone_number": samples.phone()}]},
        [*BATCH_ROWS, *rows("items.0", {}, {"profile_id": " "}), *rows("items.0.phone_number", None, *NOT_STRINGS, "x" * 1025)],
    ),
    Endpoint("POST", "/v1/sales-events", samples.sale, SALE_ROWS),
    Endpoint("POST", "/v1/sales-events/batch", lambda store: {"items": [samples.sale(store)]}, BATCH_ROWS),
]  # fmt: skip


@dataclass(frozen=True)
class Content:
    """Make a body's bytes from the bytes of a valid one, and expect one of the codes (none: it is accepted)."""

    name: str
    make: Callable[[bytes], bytes]
    codes: tuple[str, ...]
    headers: dict[str, str] = field(default_factory=dict)


def _fixed(content: bytes) -> Callable[[bytes], bytes]:
    return lambda _: content


def _with_member(member: bytes) -> Callable[[bytes], bytes]:
    """The valid body with one more, unknown member."""
    return lambda valid: valid[:-1] + b"," + member + b"}"


def _nested(depth: int) -> Callable[[bytes], bytes]:
    """An unknown member that brings the whole body to this depth."""
    return _with_member(b'"deep":' + b"[" * (depth - 1) + b"]" * (depth - 1))


CONTENTS = [
    Content("empty", _fixed(b""), (N,)),
    Content("blank", _fixed(b"  \n"), (N,)),
    Content("truncated", lambda valid: valid[:-1], (N,)),
    Content("trailing garbage", lambda valid: valid + b"x", (N,)),
    Content("one brace too many", lambda valid: valid + b"}", (N,)),
    Content("two documents", lambda valid: valid + valid, (N,)),
    Content("comment", lambda valid: b"/* hi */" + valid, (N,)),
    Content("single quotes", _fixed(b"{'external_id':'x'}"), (N,)),
    Content("trailing comma", lambda valid: valid[:-1] + b",}", (N,)),
    Content("null", _fixed(b"null"), (V,)),
    Content("list", _fixed(b"[]"), (V,)),
    Content("string", _fixed(b'"x"'), (V,)),
    Content("number", _fixed(b"1"), (V,)),
    Content("NaN", _with_member(b'"x":NaN'), (N, V)),
    Content("Infinity", _with_member(b'"x":-Infinity'), (N, V)),
    Content("1e400", _with_member(b'"x":1e400'), (N, V)),
    Content("1e400 in a list", _with_member(b'"x":[1e+400]'), (N, V)),
    Content("5000 digits", _with_member(b'"x":' + b"9" * 5000), (N, V)),
    Content("depth 33", _nested(33), (N,)),
    Content("depth 1000", _nested(1000), (N,)),
    Content("depth 100000", _nested(100_000), (N,)),
    Content("depth 100000 of objects", _fixed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), (N,)),
    Content("depth 100000, never closed", _fixed(b"[" * 100_000), (N,)),
    Content("escaped NUL in a value", _with_member(b'"x":"a\\u0000b"'), (V,)),
    Content("escaped NUL in a key", _with_member(b'"a\\u0000b":1'), (V,)),
    Content("escaped NUL in a nested list", _with_member(b'"x":[{"y":["\\u0000"]}]'), (V,)),
    Content("raw NUL", _with_member(b'"x":"a\x00b"'), (N,)),
    Content("NUL after the body", lambda valid: valid + b"\x00", (N,)),
    Content("lone high surrogate", _with_member(b'"x":"\\ud800"'), (N,)),
    Content("lone low surrogate", _with_member(b'"x":"\\udc00x"'), (N,)),
    Content("lone surrogate in a key", _with_member(b'"\\ud83d":1'), (N,)),
    Content("swapped surrogates", _with_member(b'"x":"\\ude00\\ud83d"'), (N,)),
    Content("invalid UTF-8", _with_member(b'"x":"\xff"'), (N,)),
    Content("overlong UTF-8", _with_member(b'"x":"\xc0\xaf"'), (N,)),
    Content("UTF-8 surrogate", _with_member(b'"x":"\xed\xa0\x80"'), (N,)),
    Content("raw control character", _with_member(b'"x":"\x01"'), (N,)),
    Content("UTF-16", lambda valid: valid.decode().encode("utf-16"), (N,)),
    Content("UTF-16 without a mark", lambda valid: valid.decode().encode("utf-16-le"), (N,)),
    Content("byte order mark", lambda valid: b"\xef\xbb\xbf" + valid, (N,)),
    Content("bad escape", _with_member(b'"x":"\\x41"'), (N,)),
    Content("half a constant", _with_member(b'"x":tru'), (N,)),
    Content("byte order mark and escaped NUL", lambda valid: b"\xef\xbb\xbf" + valid[:-1] + b',"x":"\\u0000"}', (N, V)),
    Content("leading zero", _with_member(b'"x":01'), (N,)),
]

# The same as an unknown member, but harmless: accepted by every operation that ignores unknown members.
HARMLESS = [
    Content("depth 32", _nested(32), ()),
    Content("surrogate pair", _with_member(b'"x":"\\ud83d\\ude00"'), ()),
    Content("100000 unknown keys", _with_member(b",".join(b'"k%d":0' % number for number in range(80_000))), ()),
    Content("brackets in a string", _with_member(b'"x":"' + b"[" * 1000 + b'"'), ()),
]

# For every list: each query must be refused with this code.
LIST_QUERIES: list[tuple[str, str]] = [
    *[(f"limit={value}", V) for value in ("0", "-1", "abc", "1.5", "", "%201", "1e3", "%D9%A3", "0x10")],
    *[(f"cursor={value}", CURSOR) for value in ("garbage", "", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA", "%00"[:0] + "x" * 3000)],
    ("unknown=1", V),
    ("limit=1&limit=1", V),
    ("cursor=%00", V),
    ("limit=%FF", V),
    ("limit", V),
    ("=", V),
    ("limit=1&&limit", V),
]

LISTS = [
    "/v1/profiles",
    "/v1/stores",
    "/v1/subscriptions",
    "/v1/sales-events",
    "/v1/subscriptions/{subscription_id}/history",
]

# Path segments that must give 404 or 400 and never more than that, for every operation with a reference.
SEGMENTS = ["%FF", "%00", "%", "%2", "%zz", "%C3%28", "%ED%A0%80", "%20", "%0A", "x" * 256, "%F0%9F%A7%A3" * 256, "%80x", "prof_x", "store_x", "sub_x", "evt_x", "prof_" + "z" * 26]  # fmt: skip
