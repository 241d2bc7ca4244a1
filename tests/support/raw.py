"""Sends HTTP requests as raw bytes over a socket: no client library changes or refuses them."""

import http.client
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.message import Message
from io import BufferedIOBase

from regulars.kit.json import encode

ANSWER_SECONDS_MAX = 90

Header = tuple[bytes, bytes]
Comparable = tuple[int, list[tuple[str, str]], bytes]
VARIES = re.compile(rb'"(?:id|created_at|updated_at|request_id|next_cursor)":"[^"]*"')


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def request_bytes(method: bytes, target: bytes, headers: Iterable[Header], body: bytes | None = None) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (method, target), b"Host: regulars.test", b"Connection: close"]
    lines += [name + b": " + value for name, value in headers]
    if body is not None:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def chunked_bytes(method: bytes, target: bytes, headers: Iterable[Header], chunks: Iterable[bytes]) -> bytes:
    head = request_bytes(method, target, [*headers, (b"Transfer-Encoding", b"chunked")])
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])


def keep_alive(request: bytes) -> bytes:
    """The same request without `Connection: close`."""
    return request.replace(b"Connection: close\r\n", b"", 1)


def exchange(address: tuple[str, int], *pieces: bytes) -> Answer:
    """Sends the pieces and reads one response. A server may refuse and close before it has read all pieces."""
    with socket.create_connection(address, timeout=ANSWER_SECONDS_MAX) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_answer(connection, method="HEAD" if pieces[0].startswith(b"HEAD ") else None)


def send(
    address: tuple[str, int], method: str, target: str, *, headers: Sequence[Header] = (), body: bytes | None = None
) -> Answer:
    return exchange(address, request_bytes(method.encode(), target.encode("latin-1"), headers, body))


def read_one(reader: BufferedIOBase, *, method: bytes = b"GET") -> Answer:
    """Reads the next response of a keep-alive connection (`connection.makefile("rb")`)."""
    status = int(reader.readline().split()[1])
    headers = http.client.parse_headers(reader)
    length = 0 if method == b"HEAD" else int(headers.get("content-length", 0))
    return Answer(status, headers, reader.read(length))


def read_answer(connection: socket.socket, *, method: str | None = None) -> Answer:
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    return Answer(response.status, response.headers, response.read())


def comparable(answer: Answer) -> Comparable:
    """An answer without what differs between two requests and between organizations with the same content: ids, times,
    and the figures of the rate limit."""
    headers = sorted(
        (name.lower(), value)
        for name, value in answer.headers.items()
        if not name.lower().startswith("ratelimit-") and name.lower() not in {"date", "x-request-id"}
    )
    return answer.status, headers, VARIES.sub(b"", answer.body)


def json_body(value: object) -> bytes:
    return encode(value)
