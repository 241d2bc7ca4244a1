import hashlib
from itertools import combinations

import pytest
from tests.support.routes import ROUTES

from regulars.http.refusals import refusals_of_all
from regulars.idempotency.errors import InvalidIdempotencyKey
from regulars.idempotency.model import fingerprint, is_stored, read_key


def test_no_header_is_no_key_and_one_is_taken_to_the_letter():
    assert read_key([]) is None
    assert read_key([b"!~"]) == "!~"
    assert read_key([b"x" * 255]) == "x" * 255


def test_white_space_around_a_key_is_not_part_of_it():
    assert [read_key([value]) for value in (b" a", b"a\t", b"\t a \t")] == ["a"] * 3


@pytest.mark.parametrize(
    "values",
    [
        [b""],
        [b"x" * 256],
        [b"a b"],
        [b" "],
        [b"a\t b"],
        [b"a\x0b"],
        [b"a\x00"],
        [b"a\x7f"],
        [b"\xc3\xa9"],
        [b"a", b"a"],
        [b"a", b"b"],
    ],
)
def test_any_other_header_is_refused(values):
    with pytest.raises(InvalidIdempotencyKey):
        read_key(values)


def test_the_fingerprint_of_a_full_key_stays_what_it_was():
    was = hashlib.sha256(b"POST /v1/stores\n{}").digest()
    assert fingerprint("POST", b"/v1/stores", b"{}") == was
    assert fingerprint("POST", b"/v1/stores", b"{}", is_ingest_only=True) != was


def test_whatever_differs_in_the_request_differs_in_the_fingerprint():
    requests = [
        ("POST", b"/v1/stores", b"{}"),
        ("POST", b"/v1/stores", b"{} "),
        ("POST", b"/v1/stores?", b"{}"),
        ("POST", b"/v1/profiles", b"{}"),
        ("DELETE", b"/v1/stores", b"{}"),
        ("POST", b"/v1/stores", b""),
        ("POST", b"/v1/store", b"s{}"),
        ("POST", b"/v1/a%2Fb", b"{}"),
        ("POST", b"/v1/a/b", b"{}"),
    ]
    prints = [fingerprint(*request) for request in requests]
    assert all(one != other for one, other in combinations(prints, 2))
    assert prints[0] == fingerprint(*requests[0])


def test_every_success_and_the_refusals_of_the_operation_are_stored():
    stored = {status for status in range(100, 600) if is_stored(status)}
    assert stored == {*range(200, 300), 400, 404}
    assert {error.status for error in refusals_of_all(ROUTES) if is_stored(error.status)} == {400, 404}
