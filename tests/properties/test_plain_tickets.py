"""The strict decoder never takes a ticket that the careful one refuses, and never reads one differently."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regulars.http.batch import read_batch
from regulars.http.route import BATCH_REQUEST_ITEMS_MAX
from regulars.kit.errors import ApiError
from regulars.sales.decode import decode_fully, decode_plain_batch, decode_plainly
from regulars.sales.model import Sale

names = st.one_of(
    st.sampled_from(
        ["S1:1", "a", " a", "a ", "prof_1", "store_x", "evt_", "subtle", "é", "a\tb", "", "x" * 255, "x" * 256]
    ),
    st.text(max_size=12),
)
moments = st.one_of(
    st.sampled_from(
        [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.120Z",
            "2026-01-02T03:04:05.1209999Z",
            "2026-01-02T03:04:05.999999+02:00",
            "2026-01-02t03:04:05z",
            "2026-01-02 03:04:05Z",
            "2026-01-02T03:04:05+0200",
            "2026-01-02T24:00:00Z",
            "2026-01-02T23:59:60Z",
            "2026-02-30T00:00:00Z",
            "0001-01-01T00:00:00+02:00",
            "9999-12-31T23:59:59-01:00",
            "２026-01-02T03:04:05Z",
        ]
    ),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
)
integers = st.one_of(
    st.sampled_from([0, 1, -1, 2**53 - 1, 2**53, -(2**53), 10**9, 10**9 - 1, 10**400]), st.integers(-10, 10**10)
)
scalars = st.one_of(integers, st.floats(), st.booleans(), st.none(), st.text(max_size=5))
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2))
properties = st.one_of(st.dictionaries(names, scalars, max_size=3), st.none(), anything)
products = st.one_of(
    st.none(), st.fixed_dictionaries({}, optional={"external_id": names, "name": names, "properties": properties})
)
lines = st.fixed_dictionaries(
    {"quantity": st.one_of(st.just(1), integers, scalars), "total_price_cents": integers},
    optional={
        "product": products,
        "external_id": names,
        "unit": st.one_of(names, st.none()),
        "unit_price_cents": st.one_of(integers, st.none()),
        "discount_cents": integers,
        "unknown": anything,
    },
)
ORDINARY: dict[str, Any] = {
    "external_id": "S1:1",
    "type": "PURCHASE",
    "occurred_at": "2026-01-02T03:04:05.120Z",
    "store_id": "S1",
    "profile_id": "ada",
    "currency": "EUR",
    "total_amount_cents": 100,
    "total_discount_cents": 0,
    "total_tax_cents": 20,
    "source": "pos",
    "line_items": [
        {"external_id": "1", "product": {"name": "x", "properties": {"size": "M", "new": True, "n": 3}}, "quantity": 2,
         "total_price_cents": 100},
        {"quantity": -1, "total_price_cents": -5, "product": None},
    ],
}  # fmt: skip
changes = st.dictionaries(
    st.sampled_from([*ORDINARY, "payments", "loyalty", "metadata", "unknown"]), anything, max_size=2
)
likely = st.fixed_dictionaries(
    {},
    optional={
        "external_id": names,
        "store_id": names,
        "profile_id": st.one_of(names, st.none()),
        "occurred_at": moments,
        "type": st.sampled_from(["RETURN", "purchase"]),
        "total_amount_cents": integers,
        "total_tax_cents": st.one_of(integers, st.none()),
        "source": names,
        "payments": anything,
        "metadata": anything,
        "line_items": st.lists(lines, max_size=3),
    },
)
bodies = st.builds(lambda one, other: json.dumps({**ORDINARY, **one, **other}).encode(), likely, changes)
spelled = st.builds(
    lambda body, old, new: body.replace(old, new),
    bodies,
    st.sampled_from([b'"S1"', b"100", b'"pos"', b"{", b",", b'"quantity"']),
    st.sampled_from(
        [b'"S\\u0031"', b'"\\ud800"', b'"\\u0000"', b"1e2", b"1e400", b"00", b'"a\x00b"', b'"\xff"', b"[[", b""]
    ),
)


def careful(body: bytes) -> Sale | None:
    try:
        return decode_fully(body)
    except ApiError:
        return None


@given(bodies | spelled)
@example(json.dumps({**ORDINARY, "payments": {"a": "\x00"}}).encode())
@example(json.dumps({**ORDINARY, "payments": None, "loyalty": {}, "metadata": []}).encode())
@example(json.dumps({**ORDINARY, "metadata": {"deep": json.loads("[" * 40 + "]" * 40)}}).encode())
@example(b'{"external_id":"a","external_id":"evt_1"' + json.dumps(ORDINARY).encode()[1:])
def test_what_it_takes_is_read_as_the_careful_one_reads_it(body: bytes) -> None:
    plain = decode_plainly(body)
    assert plain is None or plain == careful(body)


@given(bodies)
def test_the_decoders_together_decide_as_the_careful_one_alone(body: bytes) -> None:
    assert (decode_plainly(body) or careful(body)) == careful(body)


def careful_batch(body: bytes) -> list[Sale | None] | None:
    """Each item read carefully, or nothing if the body as a whole is refused."""
    try:
        return [None if isinstance(item, ApiError) else item for item in read_batch(body, decode_fully).items]
    except ApiError:
        return None


_ordinary = json.dumps(ORDINARY).encode()
# What msgspec passes over in a free object.
BAD = (b'{"a":"\xff"}', b"[1e400]", b"[" * 40 + b"]" * 40)


@given(st.lists(bodies | spelled | st.just(_ordinary), min_size=1, max_size=3).map(b",".join))
@example(_ordinary + b'],"items":[' + _ordinary)
@example(b'{"payments":{"a":"\\u0000"}}],"items":[' + _ordinary)
@example(b'1],"items":[' + _ordinary)
@example(b'],"items":[' + _ordinary)
@example(b",".join([_ordinary] * 501) + b'],"items":[' + _ordinary)
@example(json.dumps({**ORDINARY, "payments": json.loads("[" * 31 + "]" * 31)}).encode())
@example(json.dumps({**ORDINARY, "metadata": {"x": "a" * 5_000}}).encode())
@example(json.dumps({**ORDINARY, "line_items": [{**ORDINARY["line_items"][0], "product": {
    "properties": {str(n): "a" * 100 for n in range(41)}}}]}).encode())  # fmt: skip
def test_a_batch_that_it_takes_is_read_as_the_careful_one_reads_it(items: bytes) -> None:
    body = b'{"items":[' + items + b"]}"
    plain = decode_plain_batch(body)
    # The bound on their number is the route's to hold.
    assert plain is None or plain == careful_batch(body) or not 0 < len(plain) <= BATCH_REQUEST_ITEMS_MAX


@pytest.mark.parametrize("bad", BAD, ids=["utf-8", "double", "depth"])
def test_what_was_passed_over_is_checked_also_when_its_name_comes_again(bad: bytes) -> None:
    for again in (b"null", b"{}"):
        ticket = _ordinary[:-1] + b',"metadata":' + bad + b',"metadata":' + again + b"}"
        assert decode_plainly(ticket) is careful(ticket) is None
        assert decode_plain_batch(b'{"items":[' + ticket + b"]}") is None


def test_a_list_that_another_replaces_is_left_to_the_careful_way() -> None:
    assert decode_plain_batch(b'{"items":[' + _ordinary + b'],"items":[' + _ordinary + b"]}") is None


def test_a_batch_of_ordinary_tickets_is_taken() -> None:
    other = json.dumps({**ORDINARY, "external_id": "S1:2", "payments": [1], "source": "Kasse Süd"}, ensure_ascii=False)
    sales = decode_plain_batch(b'{"items": [' + _ordinary + b", " + other.encode() + b"]}")
    assert sales == [careful(_ordinary), careful(other.encode())]


def test_an_ordinary_ticket_is_taken() -> None:
    for changed in ({}, {"profile_id": None}, {"payments": [{"a": 1.5}]}, {"occurred_at": "2026-01-02T03:04:05+02:00"}):
        assert decode_plainly(msgspec.json.encode({**ORDINARY, **changed})) is not None
