"""A short way through the HTTP server for the one route that carries the load.

Uvicorn makes an ASGI scope, a task and several futures per request, and writes an answer's head and body separately;
on the hot route that costs as much as the sale itself. This subclass of uvicorn's protocol hands a request that
arrived whole to the lane instead, and writes the answer in one piece. It goes below uvicorn's public interface, so it
is small, it can be switched off (`fast_lane`), tests hold its answers equal to the plain path's, and whatever is not
plain sailing (a body in pieces, `Expect`, an older HTTP, pipelining, a key that is not in the cache, any refusal) is
replayed into uvicorn as if nothing had happened.
"""

from collections.abc import Callable
from typing import ClassVar, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from regulars.http.guarded_protocol import GuardedProtocol

Headers = list[tuple[bytes, bytes]]
Reply = Callable[[int, list[bytes]], None]

_METHOD = b"POST"
_HTTP_VERSION = "1.1"
_CLOSE = b"connection: close\r\n"


class Lane(Protocol):
    """What decides about a request: it takes it and replies later, or declines it at once."""

    url: bytes

    def take(self, headers: Headers, body: bytes, reply: Reply) -> bool: ...


def lane_protocol(lane: Lane) -> type[HttpToolsProtocol]:
    """The protocol class for uvicorn's `http` option."""
    return type("LaneProtocol", (_LaneProtocol,), {"lane": lane})


class _Nothing:
    """Stands where uvicorn keeps the event that wakes a request's task; the lane has no task."""

    def set(self) -> None:
        pass


class _LaneCycle:
    """What uvicorn's protocol looks at in the request that is being answered."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self) -> None:
        self.disconnected = False
        self.keep_alive = True
        self.message_event = _Nothing()
        self.response_complete = True


class _LaneProtocol(GuardedProtocol):
    lane: ClassVar[Lane]
    # The body of a request for the lane while it is being parsed; None at any other time.
    _collected: list[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._collected is not None:
            # The rest of the body has yet to come: uvicorn waits for it, with its limits and our deadline.
            self._leave_lane()

    def on_headers_complete(self) -> None:
        if (
            self.url == self.lane.url
            # A caller who does not read its answers takes the plain path, which waits until it does.
            and not self.flow.write_paused
            and self.parser.get_method() == _METHOD
            and self.parser.get_http_version() == _HTTP_VERSION
            and not self.expect_100_continue
            and not self.parser.should_upgrade()
            and (self.cycle is None or self.cycle.response_complete)
        ):
            self._end_head()
            self._collected = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._collected is not None:
            self._collected.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._collected is None:
            super().on_message_complete()
            return
        cycle = _LaneCycle()
        cycle.keep_alive = self.parser.should_keep_alive()
        if self.lane.take(self.headers, b"".join(self._collected), lambda *answer: self._reply(cycle, *answer)):
            self._collected = None
            cycle.response_complete = False
            self.cycle = cycle  # type: ignore[assignment]  # it has what the protocol looks at
        else:
            self._leave_lane()
            super().on_message_complete()

    def _leave_lane(self) -> None:
        """Tell uvicorn what has been parsed so far."""
        collected, self._collected = self._collected or [], None
        super().on_headers_complete()
        for piece in collected:
            super().on_body(piece)

    def _reply(self, cycle: _LaneCycle, status: int, pieces: list[bytes]) -> None:
        """Write status, our headers and the pieces (further headers, a blank line, the body) at once."""
        cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        content = [STATUS_LINE[status]]
        for name, value in self.server_state.default_headers:
            content += (name, b": ", value, b"\r\n")
        if not cycle.keep_alive:
            content.append(_CLOSE)
        content += pieces
        self.transport.write(b"".join(content))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
