"""What is not HTTP is refused in the format of all errors, after the responses to the requests before it."""

import json
import socket

import pytest
from tests.support import raw
from tests.support.client import Api
from tests.support.server import Server

READ = raw.keep_alive(raw.request_bytes(b"GET", b"/healthz", []))
BAD_TARGETS = [
    b"http://x:99999/",
    b"http://x:y/v1/stores",
    b"http://x",
    b"http://",
    b"x",
    b"?a=1",
    b"/v1/stores/\xc3\xa9",
    b"/\x00",
]
JSON_TYPE = (b"Content-Type", b"application/json")


def request(target: bytes, *, method: bytes = b"GET") -> bytes:
    return raw.keep_alive(raw.request_bytes(method, target, []))


def broken_body(chunks: bytes, *headers: raw.Header, target: bytes = b"/v1/stores") -> bytes:
    whole = raw.chunked_bytes(b"POST", target, [JSON_TYPE, *headers], [])
    return raw.keep_alive(whole).removesuffix(b"0\r\n\r\n") + chunks


def answers_to(server: Server, sent: bytes) -> list[raw.Answer]:
    """Every response until the server closes the connection."""
    with (
        socket.create_connection(server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection,
        connection.makefile("rb") as reader,
    ):
        connection.sendall(sent)
        answers = []
        while reader.peek(1):
            answers.append(raw.read_one(reader))
        return answers


def assert_refused(answer: raw.Answer, status: int, code: str) -> None:
    problem = json.loads(answer.body)
    assert (answer.status, problem["code"], problem["status"]) == (status, code, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"] == problem["request_id"]
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("target", BAD_TARGETS)
def test_a_target_that_cannot_be_parsed_is_400(either_server: Server, target: bytes, before: int) -> None:
    *earlier, last = answers_to(either_server, READ * before + request(target) + READ)
    assert [answer.status for answer in earlier] == [200] * before
    assert_refused(last, 400, "MALFORMED_REQUEST")


@pytest.mark.parametrize("length", [65_536, 100_000, 1_000_000])
def test_a_long_target_is_414(either_server: Server, length: int) -> None:
    first, last = answers_to(either_server, READ + request(b"/v1/" + b"x" * length))
    assert first.status == 200
    assert_refused(last, 414, "URI_TOO_LONG")


@pytest.mark.parametrize("chunks", [b"x\r\n", b"-1\r\n", b"2\r\n{}x", b"\r\n\r\n", b"ffffffffffffffffff\r\n"])
def test_a_malformed_chunked_body_is_400(either_server: Server, api: Api, chunks: bytes) -> None:
    (key,) = api.key_header()
    for headers in ([], [key]):
        assert_refused(answers_to(either_server, broken_body(chunks, *headers))[-1], 400, "MALFORMED_REQUEST")
        # Behind a read the body is never waited for.
        first, last = answers_to(either_server, READ + broken_body(chunks, *headers) + READ)
        assert first.status == 200
        assert_refused(last, 400, "MALFORMED_REQUEST")


def test_a_body_that_breaks_after_the_response_gets_no_second_one(either_server: Server) -> None:
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(broken_body(b"2\r\n{}\r\n"))
        reader = connection.makefile("rb")
        assert raw.read_one(reader).status == 401
        connection.sendall(b"no chunk\r\n")
        assert reader.read() == b""
        reader.close()


def test_a_read_and_a_write_before_it_get_their_responses(either_server: Server, api: Api) -> None:
    (key,) = api.key_header()
    body = b'{"external_id":"before"}'
    write = raw.keep_alive(raw.request_bytes(b"POST", b"/v1/stores", [key, JSON_TYPE], body))
    read = raw.keep_alive(raw.request_bytes(b"GET", b"/v1/stores/before", [key]))
    for status in (201, 200, 200):
        answers = answers_to(either_server, write + read + request(b"http://x:99999/"))
        assert [answer.status for answer in answers] == [status, 200, 400]


STRICT_LINES = [
    b"%b %b\r\n\r\n",
    b"%b %b\r\nHost: a\r\n",
    b"%b %b RTSP/1.0\r\n",
    b"%b %b ICE/1.0\r\n",
    b"%b %b HTTP/2.0\r\n",
    b"%b %b HTTP/1.2\r\n",
    b"%b %b http/1.1\r\n",
    b"%b  %b HTTP/1.1\r\n",
    b"%b %b  HTTP/1.1\r\n",
    b"%b\t%b HTTP/1.1\r\n",
    b" %b %b HTTP/1.1\r\n",
    b"\r%b %b HTTP/1.1\r\n",
    b"\n%b %b HTTP/1.1\r\n",
    b"%b %b HTTP/1.1\n",
    b"%b %b HTTP/1.1 \r\n",
]
BODY = b'{"external_id":"smuggled"}'


def write_with(api: Api, line: bytes, *headers: raw.Header, body: bytes = BODY) -> bytes:
    """A write that would store a store under the key `smuggled`, with another first line."""
    sent = [*api.key_header(), JSON_TYPE, (b"Idempotency-Key", b"smuggled"), *headers]
    has_length = not any(name == b"Transfer-Encoding" for name, _ in headers)
    request = raw.keep_alive(raw.request_bytes(b"POST", b"/v1/stores", sent, body if has_length else None))
    return request.replace(b"POST /v1/stores HTTP/1.1\r\n", line) + (b"" if has_length else body)


def assert_nothing_ran(api: Api) -> None:
    assert api.get("/v1/stores/smuggled").status == 404
    # The key is free: another body is accepted with it.
    stored = api.post("/v1/stores", {"external_id": "other"}, idempotency_key="smuggled")
    assert (stored.status, stored.is_replay) == (201, False)


@pytest.mark.parametrize("line", STRICT_LINES)
def test_a_request_line_in_another_form_is_400_and_runs_nothing(either_server: Server, api: Api, line: bytes) -> None:
    (key,) = api.key_header()
    strange = write_with(api, line % (b"POST", b"/v1/stores"))
    read = raw.keep_alive(raw.request_bytes(b"GET", b"/v1/stores", [key]))
    chunked = broken_body(b"2\r\n{}\r\n0\r\n\r\n", key)
    for before, statuses in ((b"", []), (b"\r\n\r\n", []), (read, [200]), (READ + read, [200, 200]), (chunked, [400])):
        *earlier, last = answers_to(either_server, before + strange + read)
        assert [answer.status for answer in earlier] == statuses
        assert_refused(last, 400, "MALFORMED_REQUEST")
    assert_nothing_ran(api.on(either_server))


def test_the_preface_of_http_2_is_400(either_server: Server) -> None:
    (answer,) = answers_to(either_server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert_refused(answer, 400, "MALFORMED_REQUEST")


def test_empty_lines_before_a_request_are_allowed(either_server: Server) -> None:
    with (
        socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection,
        connection.makefile("rb") as reader,
    ):
        for before in (b"", b"\r\n", b"\r\n" * 5):
            connection.sendall(before + READ)
            assert raw.read_one(reader).status == 200


LINE = b"POST /v1/stores HTTP/1.1\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize(
    "encoding",
    [b"gzip", b"identity", b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"xchunked", b"chunked;q=1"],
)
def test_a_transfer_encoding_other_than_chunked_is_501(either_server: Server, api: Api, encoding: bytes) -> None:
    sent = write_with(api, LINE, (b"Transfer-Encoding", encoding), body=CHUNKS)
    for before in (b"", READ):
        *earlier, last = answers_to(either_server, before + sent)
        assert [answer.status for answer in earlier] == [200] * bool(before)
        assert_refused(last, 501, "UNSUPPORTED_TRANSFER_ENCODING")
    assert_nothing_ran(api.on(either_server))


def test_chunks_with_http_1_0_or_beside_a_length_are_400(either_server: Server, api: Api) -> None:
    chunked = (b"Transfer-Encoding", b"chunked")
    length = (b"Content-Length", b"%d" % len(CHUNKS))
    for sent in (
        write_with(api, LINE.replace(b"1.1", b"1.0"), chunked, body=CHUNKS),
        write_with(api, LINE, chunked, length, body=CHUNKS),
        write_with(api, LINE, length, chunked, body=CHUNKS),
    ):
        (answer,) = answers_to(either_server, sent)
        assert_refused(answer, 400, "MALFORMED_REQUEST")
    assert_nothing_ran(api.on(either_server))


@pytest.mark.parametrize("encoding", [b"chunked", b"Chunked", b"CHUNKED"])
def test_chunked_in_any_case_is_read(either_server: Server, api: Api, encoding: bytes) -> None:
    sent = write_with(api, LINE, (b"Transfer-Encoding", encoding), body=CHUNKS)
    with (
        socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection,
        connection.makefile("rb") as reader,
    ):
        connection.sendall(sent)
        assert raw.read_one(reader).status == 201


def test_a_head_request_gets_a_refusal_without_a_body(either_server: Server) -> None:
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(request(b"http://x:99999/", method=b"HEAD"))
        received = b""
        while chunk := connection.recv(65_536):
            received += chunk
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.endswith(b"\r\n\r\n")


def test_many_of_them_cost_few_lines_of_the_log(either_server: Server) -> None:
    def lines() -> int:
        return either_server.log().count('"code": "MALFORMED_REQUEST"')

    answers_to(either_server, request(b"http://x:99999/"))
    before = lines()
    assert before >= 1
    for _ in range(30):
        answers_to(either_server, request(b"http://x:99999/"))
    # A minute may have ended meanwhile.
    assert lines() <= before + 1
