"""Read the headers and the query of an API request, and check them against limits."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

from starlette.types import Message, Scope, Send

from regulars.http.body import too_large
from regulars.http.request import Caller
from regulars.http.route import Route
from regulars.kit.address import url_of_host
from regulars.kit.clock import monotonic
from regulars.kit.errors import Headers, HeadersTooLarge, UnsupportedMediaType, UriTooLong, invalid
from regulars.kit.ids import new_request_id

HEADER_BYTES_MAX = 16 << 10
URL_BYTES_MAX = 8 << 10
QUERY_FIELDS_MAX = 100

VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:\-]{1,128}")
# A media type, and one parameter after it (`; charset=utf-8`) with a name and a value.
_JSON = re.compile(rb"application/json[ \t]*", re.IGNORECASE)
_PARAMETER = re.compile(rb";[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=([!#$%&'*+.^_`|~\w-]+|\"(?:[^\"\\]|\\.)*\")[ \t]*)?")


class Exchange:
    """One request and its response. `references` are the ids in the request's path."""

    def __init__(self, scope: Scope, *, public_url: str | None = None) -> None:
        self.scope = scope
        self.started = monotonic()
        self.route: Route | None = None
        self.references: tuple[str, ...] = ()
        self.caller: Caller | None = None
        self.rate_headers: Headers = ()
        # The seconds that the response may take after the last byte of the body.
        self.time_left_s = 0.0
        self.headers: dict[bytes, bytes] = {}
        self.api_keys: list[bytes] = []
        self.idempotency_keys: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"x-api-key":
                self.api_keys.append(value)
            elif name == b"idempotency-key":
                self.idempotency_keys.append(value)
            else:
                self.headers[name] = value
        host = self.headers.get(b"host", b"") if has_one_host(scope) else b""
        self.base_url = public_url or url_of_host(scope["scheme"], host)
        self.request_id = _choose_request_id(self.headers.get(b"x-request-id", b""))

    def check_host(self) -> None:
        if not has_one_host(self.scope):
            raise invalid("", "HOST", "A request in HTTP/1.1 has exactly one Host header.")

    def check_size(self) -> None:
        if len(self.scope["raw_path"]) + len(self.scope["query_string"]) > URL_BYTES_MAX:
            raise UriTooLong(f"A URL may have {URL_BYTES_MAX} bytes.")
        if sum([len(name) + len(value) for name, value in self.scope["headers"]]) > HEADER_BYTES_MAX:
            raise HeadersTooLarge(f"All headers together may have {HEADER_BYTES_MAX} bytes.")

    def check_media_type(self, *, takes_gzip: bool) -> None:
        if not _is_json(self.headers.get(b"content-type", b"")):
            raise UnsupportedMediaType("Send Content-Type: application/json, in UTF-8.")
        if self._encoding != b"identity" and not (takes_gzip and self.is_gzip):
            exception = "other than gzip" if takes_gzip else "(only batches may be sent with gzip)"
            raise UnsupportedMediaType(f"Send the body without a Content-Encoding {exception}.")

    @property
    def is_gzip(self) -> bool:
        return self._encoding in {b"gzip", b"x-gzip"}

    @property
    def _encoding(self) -> bytes:
        return self.headers.get(b"content-encoding", b"identity").lower()

    def check_announced_length(self, bytes_max: int) -> None:
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > bytes_max:
            raise too_large(bytes_max)


def has_one_host(scope: Scope) -> bool:
    """Whether there is exactly one Host header; versions before HTTP/1.1 may omit it."""
    return [name for name, _ in scope["headers"]].count(b"host") == 1 or scope["http_version"] != "1.1"


def _is_json(media_type: bytes) -> bool:
    """Whether the type is `application/json` without a charset other than UTF-8; other parameters are ignored."""
    if media_type == b"application/json":
        return True
    match = _JSON.match(media_type)
    while match is not None and match.end() < len(media_type):
        match = _PARAMETER.match(media_type, match.end())
        if match is not None and (match[1] or b"").lower() == b"charset" and match[2].strip(b'"').lower() != b"utf-8":
            return False
    return match is not None


def read_query(query_string: bytes, allowed: Iterable[str]) -> Mapping[str, str]:
    """Parse the query: only allowed parameters, each at most once, as UTF-8 text without NUL."""
    # An empty field, as in `?limit=5&`, is ignored.
    fields = b"&".join([field for field in query_string.split(b"&") if field])
    if not fields:
        return {}
    try:
        pairs = parse_qsl(
            fields.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=QUERY_FIELDS_MAX,
        )
    except ValueError:
        raise invalid("", "FORMAT", "The query string cannot be read.") from None
    allowed_names = frozenset(allowed)
    query: dict[str, str] = {}
    for name, value in pairs:
        if name not in allowed_names:
            raise invalid(name, "UNKNOWN_PARAMETER", "This operation has no such query parameter.")
        if name in query:
            raise invalid(name, "REPEATED_PARAMETER", "This query parameter may be given once.")
        if "\x00" in value:
            raise invalid(name, "FORBIDDEN_CHARACTER", "U+0000 is not allowed.")
        query[name] = value
    return query


def _choose_request_id(sent: bytes) -> str:
    """Use the request id that the caller sent, if it is valid, else a new one."""
    return sent.decode("ascii") if VALID_REQUEST_ID.fullmatch(sent) else new_request_id()


def with_request_id(scope: Scope, send: Send) -> Send:
    """Wrap `send` so that responses outside the API have a request id too."""
    if scope["type"] != "http":
        return send
    request_id = _choose_request_id(dict(scope["headers"]).get(b"x-request-id", b"")).encode()
    scope["regulars_request_id"] = request_id.decode()

    async def send_with_id(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
        await send(message)

    return send_with_id
