"""A client of the API: calls over httpx, or byte-exact over a socket. All are checked against the OpenAPI document."""

import gzip
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from tests.support import raw
from tests.support.contract import AnswerLike, Contract
from tests.support.raw import Answer as RawAnswer
from tests.support.raw import Header
from tests.support.server import Server
from tests.support.tenant import Tenant

CALL_SECONDS_MAX = 90
# No call uses TLS, and loading the certificate authorities takes longer than most calls.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(frozen=True)
class Answer(AnswerLike):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return self.headers.get(name.lower())

    @property
    def code(self) -> str | None:
        """The error code of a refused request."""
        return self.json()["code"] if self.status >= 400 else None

    @property
    def refused(self) -> tuple[int, str | None]:
        return self.status, self.code

    @property
    def field_errors(self) -> list[tuple[str, str]]:
        return [(error["field"], error["code"]) for error in self.json().get("errors", [])]

    @property
    def is_replay(self) -> bool:
        return self.header("idempotent-replayed") == "true"


def segment(reference: str) -> str:
    """A reference as one path segment."""
    return quote(reference, safe="")


@dataclass(frozen=True)
class Api:
    """One caller with one key (or none) on one server."""

    server: Server
    contract: Contract
    http: httpx.Client
    tenant: Tenant | None

    def get(self, path: str, /, *, headers: dict[str, str] | None = None, **query: str | int) -> Answer:
        target = f"{path}?{urlencode(query)}" if query else path
        return self.call("GET", target, headers=headers)

    def post(
        self,
        path: str,
        body: object = None,
        *,
        content: bytes | None = None,
        idempotency_key: str | None = None,
        headers: dict[str, str] | None = None,
        is_described: bool = True,
    ) -> Answer:
        """`is_described` is false for a body that the server accepts but the schema does not describe."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        if idempotency_key is not None:
            sent["Idempotency-Key"] = idempotency_key
        content = raw.json_body(body) if content is None else content
        return self.call("POST", path, body=content, headers=sent, is_described=is_described)

    def delete(self, path: str, *, headers: dict[str, str] | None = None) -> Answer:
        return self.call("DELETE", path, headers=headers)

    def call(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        is_described: bool = True,
    ) -> Answer:
        sent = {**({"x-api-key": self.tenant.key} if self.tenant else {}), **(headers or {})}
        response = self.http.request(method, self.server.url + target, content=body, headers=sent)
        headers_received = {name.lower(): value for name, value in response.headers.items()}
        answer = Answer(response.status_code, headers_received, response.content)
        self.contract.check(method, target, body=body, answer=answer, is_described=is_described)
        return answer

    def raw(self, method: str, target: str, *, headers: Sequence[Header] = (), body: bytes | None = None) -> Answer:
        """Sends exactly this request line and these headers, after the API key of the caller, if any."""
        sent = [*self.key_header(), *headers]
        received = raw.send(self.server.address, method, target, headers=sent, body=body)
        is_packed = received.status < 300 and (b"Content-Encoding", b"gzip") in headers
        return self.checked(method, target, received, gzip.decompress(body or b"") if is_packed else body)

    def exchange(self, method: str, target: str, *pieces: bytes) -> Answer:
        return self.checked(method, target, raw.exchange(self.server.address, *pieces), None)

    def checked(self, method: str, target: str, received: RawAnswer, body: bytes | None) -> Answer:
        headers = {name.lower(): value for name, value in received.headers.items()}
        answer = Answer(received.status, headers, received.body)
        is_packed = answer.header("content-encoding") == "gzip"
        plain = replace(answer, body=gzip.decompress(answer.body)) if is_packed else answer
        self.contract.check(method, target, body=body, answer=plain)
        return answer

    def key_header(self) -> list[Header]:
        return [(b"x-api-key", self.tenant.key.encode())] if self.tenant else []

    def on(self, server: Server) -> "Api":
        """The same caller on another server process."""
        return replace(self, server=server)

    def as_tenant(self, tenant: Tenant | None) -> "Api":
        return replace(self, tenant=tenant)

    def pages(self, path: str, **query: str | int) -> list[Any]:
        """All items of a list, page by page."""
        items: list[Any] = []
        page = self.get(path, **query).json()
        while True:
            items += page["data"]
            assert page["has_more"] == (page["next_cursor"] is not None)
            if not page["has_more"]:
                return items
            page = self.get(path, **query, cursor=page["next_cursor"]).json()


def new_http() -> httpx.Client:
    """A client without environment settings and redirects, so that the test gets the exact response."""
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    return httpx.Client(
        timeout=CALL_SECONDS_MAX, trust_env=False, follow_redirects=False, limits=limits, verify=NO_AUTHORITIES
    )


def get_url(url: str | httpx.URL, *, timeout: float = CALL_SECONDS_MAX, **more: Any) -> httpx.Response:
    """Sends one request, with a timeout for a busy machine."""
    return httpx.get(url, timeout=timeout, trust_env=False, verify=NO_AUTHORITIES, **more)


def post_url(url: str | httpx.URL, *, timeout: float = CALL_SECONDS_MAX, **more: Any) -> httpx.Response:
    return httpx.post(url, timeout=timeout, trust_env=False, verify=NO_AUTHORITIES, **more)
