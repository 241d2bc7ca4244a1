"""A request head is cut at its idempotency key, and only there."""

import pytest

from regulars.http.fast_lane import split_key

START = b"POST /v1/sales-events HTTP/1.1"


@pytest.mark.parametrize(
    ("head", "rest", "key"),
    [
        (START, START, None),
        (START + b"\r\nHost: a", START + b"\r\nHost: a", None),
        (START + b"\r\nIdempotency-Key: k\r\nHost: a", START + b"\r\nHost: a", b"k"),
        (START + b"\r\nHost: a\r\nIDEMPOTENCY-KEY: k", START + b"\r\nHost: a", b"k"),
        (START + b"\r\nIdempotency-Key: \r\nHost: a", START + b"\r\nHost: a", b""),
        (START + b"\r\nIdempotency-Key:k\r\nHost: a", START + b"\r\nIdempotency-Key:k\r\nHost: a", None),
        (START + b"\r\nX: idempotency-key: k", START + b"\r\nX: idempotency-key: k", None),
        (
            START + b"\r\nIdempotency-Key: k\r\nidempotency-key: l",
            START + b"\r\nidempotency-key: l",
            b"k",
        ),
    ],
)
def test_the_first_key_line_is_cut_out(head, rest, key):
    assert split_key(head) == (rest, key)
