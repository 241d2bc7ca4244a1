"""A request head is cut at its length and its idempotency key, and only there."""

import pytest

from regulars.http.fast_protocol import split_head

START = b"POST /v1/sales-events HTTP/1.1"


@pytest.mark.parametrize(
    ("head", "rest", "length", "key"),
    [
        (START, START, None, None),
        (START + b"\r\nHost: a", START + b"\r\nHost: a", None, None),
        (START + b"\r\nIdempotency-Key: k\r\nHost: a", START + b"\r\nHost: a", None, b"k"),
        (START + b"\r\nHost: a\r\nIDEMPOTENCY-KEY: k", START + b"\r\nHost: a", None, b"k"),
        (START + b"\r\nIdempotency-Key: \r\nHost: a", START + b"\r\nHost: a", None, b""),
        (START + b"\r\nIdempotency-Key:k\r\nHost: a", START + b"\r\nIdempotency-Key:k\r\nHost: a", None, None),
        (START + b"\r\nX: idempotency-key: k", START + b"\r\nX: idempotency-key: k", None, None),
        (START + b"\r\nIdempotency-Key: k\r\nidempotency-key: l", START + b"\r\nidempotency-key: l", None, b"k"),
        (START + b"\r\nContent-Length: 12\r\nHost: a", START + b"\r\nHost: a", b"12", None),
        (START + b"\r\nIdempotency-Key: k\r\nHost: a\r\ncontent-length: 12", START + b"\r\nHost: a", b"12", b"k"),
        (START + b"\r\nContent-Length: 12\r\nContent-Length: 13", START + b"\r\nContent-Length: 13", b"12", None),
        (START + b"\r\nContent-Length:12", START + b"\r\nContent-Length:12", None, None),
    ],
)
def test_the_first_line_of_each_is_cut_out(head, rest, length, key):
    assert split_head(head) == (rest, length, key)
