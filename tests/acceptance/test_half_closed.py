"""A caller may close its own side once it has asked, and still gets every answer that is due."""

import socket
from typing import Any

import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.server import Server

JSON = (b"Content-Type", b"application/json")


def ask_and_close(server: Server, *pieces: bytes) -> list[int]:
    """Send all, close the sending side, and give the status of every answer until the server closes its own."""
    with socket.create_connection(server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        reader = connection.makefile("rb")
        statuses = []
        while reader.peek(1):  # type: ignore[attr-defined]  # a buffered reader has it
            statuses.append(raw.read_one(reader).status)
        return statuses


@pytest.fixture
def sale(api: Api, store: dict[str, Any]) -> bytes:
    body = samples.json_bytes(samples.sale(store["external_id"]))
    return raw.request_bytes(b"POST", b"/v1/sales-events", [*api.key_header(), JSON], body)


@pytest.fixture
def read(api: Api) -> bytes:
    return raw.request_bytes(b"GET", b"/v1/stores", api.key_header())


def test_it_receives_all_answers_in_their_order(either_server: Server, sale: bytes, read: bytes) -> None:
    # The first call looks the key up; those after it may take the lane.
    assert ask_and_close(either_server, sale) == [201]
    requests = [raw.keep_alive(sale), raw.keep_alive(read), raw.keep_alive(sale), raw.keep_alive(read)]
    for count in (1, 2, 4):
        assert ask_and_close(either_server, b"".join(requests[-count:])) == [200] * count


def test_a_request_that_was_cut_off_is_not_run_and_takes_no_answer_from_those_before_it(
    either_server: Server, sale: bytes, read: bytes
) -> None:
    assert ask_and_close(either_server, sale[:-1]) == []
    assert ask_and_close(either_server, sale[:30]) == []
    assert ask_and_close(either_server, raw.keep_alive(read) + sale[:30]) == [200]
    assert ask_and_close(either_server, raw.keep_alive(read) + sale[:-1]) in ([200], [200, 400])
    assert ask_and_close(either_server, sale) == [201]


def test_what_cannot_be_read_takes_no_answer_from_the_requests_before_it(
    either_server: Server, sale: bytes, read: bytes
) -> None:
    """The refusal of the rest must not be taken for the answer to a sale that was recorded."""
    garbage = b"\x00 nonsense\r\n\r\n"
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(raw.keep_alive(sale) + garbage)
        assert raw.read_answer(connection).status == 201
    assert ask_and_close(either_server, raw.keep_alive(read) + raw.keep_alive(sale) + garbage) == [200, 200, 400]
    broken = raw.chunked_bytes(b"POST", b"/v1/stores", [JSON], []).replace(b"0\r\n\r\n", b"nonsense\r\n")
    assert ask_and_close(either_server, raw.keep_alive(read) + raw.keep_alive(broken)) == [200, 400]
