"""Compression (an addition): lists come compressed when asked for, and batches may be sent compressed."""

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

from tests.support import samples
from tests.support.client import Answer, Api
from tests.support.server import Server

JSON_TYPE = (b"Content-Type", b"application/json")
GZIP = (b"Content-Encoding", b"gzip")
BATCH = "/v1/sales-events/batch"
BODY_BYTES_MAX = 8 << 20


def send(api: Api, body: bytes, *headers: tuple[bytes, bytes], path: str = BATCH) -> Answer:
    return api.raw("POST", path, headers=[JSON_TYPE, GZIP, *headers], body=body)


def batch_of(store: dict[str, Any], count: int) -> bytes:
    return json.dumps({"items": [samples.sale(store["id"]) for _ in range(count)]}).encode()


def test_a_list_comes_compressed_to_who_asks_for_it(api: Api) -> None:
    api.post("/v1/profiles/batch", {"items": [samples.profile() for _ in range(30)]})
    plain = api.raw("GET", "/v1/profiles")
    # Twice: the second head is one that the server knows.
    for accepts in (b"gzip", b"deflate, gzip;q=0.5, br", b"x-gzip", b"GZIP ; q=1.0") * 2:
        packed = api.raw("GET", "/v1/profiles", headers=[(b"Accept-Encoding", accepts)])
        assert (packed.header("content-encoding"), packed.header("vary")) == ("gzip", "accept-encoding"), accepts
        assert gzip.decompress(packed.body) == plain.body
        assert len(packed.body) < len(plain.body) / 3
    for accepts in (b"", b"identity", b"gzip;q=0", b"gzip; q=0.000", b"br", b"gzippy", b"*"):
        answer = api.raw("GET", "/v1/profiles", headers=[(b"Accept-Encoding", accepts)])
        assert (answer.header("content-encoding"), answer.header("vary")) == (None, "accept-encoding"), accepts
    assert (plain.header("content-encoding"), plain.header("vary")) == (None, "accept-encoding")


def test_single_objects_are_never_compressed(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(attributes={"note": "x" * 2048})).json()
    single = api.raw("GET", f"/v1/profiles/{profile['id']}", headers=[(b"Accept-Encoding", b"gzip")])
    assert (single.header("content-encoding"), single.header("vary")) == (None, None)


def test_a_list_that_cannot_be_compressed_is_answered_too(api: Api, tmp_path: Path, api_database_url: str) -> None:
    api.post("/v1/profiles/batch", {"items": [samples.profile() for _ in range(30)]})
    breaking = Server(api_database_url, tmp_path, constants={"regulars.http.gzip._LEVEL": "no level"})
    with contextlib.closing(breaking):
        breaking.start()
        here = api.on(breaking)
        # The first call looks the key up; those after it take the fast path.
        for _ in range(3):
            answer = here.raw("GET", "/v1/profiles", headers=[(b"Accept-Encoding", b"gzip")])
            assert answer.refused == (500, "INTERNAL_ERROR")
        assert here.raw("GET", "/v1/profiles").status == 200


def test_a_batch_may_be_sent_compressed(api: Api, store: dict[str, Any]) -> None:
    body = batch_of(store, 20)
    answer = send(api, gzip.compress(body))
    assert [result["status"] for result in answer.json()["results"]] == [201] * 20
    two_members = gzip.compress(body[:100]) + gzip.compress(body[100:])
    assert [result["status"] for result in send(api, two_members).json()["results"]] == [200] * 20
    profiles = json.dumps({"items": [samples.profile()]}).encode()
    assert send(api, gzip.compress(profiles), path="/v1/profiles/batch").json()["results"][0]["status"] == 201


def test_a_key_belongs_to_what_was_compressed_however_it_was(api: Api, store: dict[str, Any]) -> None:
    body, key = batch_of(store, 3), (b"Idempotency-Key", samples.unique().encode())
    first = send(api, gzip.compress(body, 1), key)
    again = send(api, gzip.compress(body, 9), key)
    plain = api.raw("POST", BATCH, headers=[JSON_TYPE, key], body=body)
    assert first.body == again.body == plain.body
    assert [answer.is_replay for answer in (first, again, plain)] == [False, True, True]
    assert send(api, gzip.compress(body + b" "), key).refused == (409, "IDEMPOTENCY_CONFLICT")


def test_more_than_8_mib_is_413_however_small_it_was_on_the_way(api: Api, store: dict[str, Any]) -> None:
    body = batch_of(store, 1)
    full = gzip.compress(body + b" " * (BODY_BYTES_MAX - len(body)))
    assert send(api, full).status == 200
    assert send(api, gzip.compress(body + b" " * (BODY_BYTES_MAX + 1 - len(body)))).refused == (
        413,
        "PAYLOAD_TOO_LARGE",
    )
    assert send(api, gzip.compress(bytes(64 << 20), 1)).refused == (413, "PAYLOAD_TOO_LARGE")


def test_what_is_no_gzip_is_refused(api: Api, store: dict[str, Any]) -> None:
    whole = gzip.compress(batch_of(store, 3))
    for body in (whole[:-9], whole[:20], whole[:-8] + bytes(8), whole + b"x", b"{}", gzip.compress(b"")):
        assert send(api, body).refused == (400, "INVALID_JSON"), body[:20]
    assert api.get("/v1/sales-events").json()["data"] == []


def test_nothing_but_gzip_and_nothing_but_batches(api: Api) -> None:
    for path, encoding in ((BATCH, b"br"), (BATCH, b"gzip, gzip"), ("/v1/profiles", b"gzip"), ("/v1/stores", b"gzip")):
        headers = [JSON_TYPE, (b"Content-Encoding", encoding)]
        answer = api.raw("POST", path, headers=headers, body=gzip.compress(b"{}"))
        assert answer.refused == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_of_many_members_is_refused_at_once(api: Api) -> None:
    """Each costs a copy of what follows: eight megabytes of empty ones took minutes."""
    answer = send(api, gzip.compress(b"") * 101)
    assert (answer.status, answer.json()["code"]) == (400, "INVALID_JSON")
