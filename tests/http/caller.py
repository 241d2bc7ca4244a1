"""Calls the API as the HTTP server does."""

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]


def posted(body: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of a request with this body."""
    length = b"%d" % len(body)
    return [(b"host", b"h"), (b"x-api-key", b"k"), (b"content-type", b"application/json"), (b"content-length", length)]


async def ask(application: Application, method: str, path: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """The status and the body of the answer."""
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "raw_path": path,
        "query_string": b"",
        "headers": posted(body) if body else [(b"host", b"h"), (b"x-api-key", b"k")],
    }
    await application(scope, receive, send)
    start, content = messages
    return start["status"], content["body"]
