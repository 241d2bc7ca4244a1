"""Decode batch requests and encode their responses: each item is refused or accepted separately, in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from regulars.http.problem import RequestContext, problem_bytes
from regulars.http.request import PAYLOAD_MISMATCH, ApiResponse
from regulars.http.route import BATCH_REQUEST_ITEMS_MAX
from regulars.kit.body_reader import NOT_JSON, members_decoder, not_json
from regulars.kit.errors import ApiError, invalid
from regulars.kit.json import check_bytes, check_text, make_decodable

T = TypeVar("T")


def items_meta(noun: str, path: str) -> Meta:
    """Describe the items of a batch request for OpenAPI."""
    return Meta(
        min_length=1,
        max_length=BATCH_REQUEST_ITEMS_MAX,
        description=f"{noun} as `POST {path}` takes them. Each is validated separately and gets its own result.",
    )


def body_meta(*types: type[msgspec.Struct]) -> Meta:
    """Describe the body of a result for OpenAPI: one of these types, or a problem."""
    names = [*(type_.__name__ for type_ in types), "Problem"]
    return Meta(
        description="The response that the item would have had alone.",
        extra_json_schema={"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]},
    )


class BatchResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one item; each batch defines the type of `body`."""

    status: Annotated[int, Meta(description="The status this item would have had alone.")]
    payload_mismatch: Annotated[
        bool | msgspec.UnsetType,
        Meta(description="Only there when true: another content was stored under this item's id before."),
    ] = msgspec.UNSET


class Batch(msgspec.Struct, Generic[T], frozen=True):
    """The items of a batch request, each decoded or refused separately, and the unknown fields, which are ignored."""

    items: Sequence[T | ApiError]
    ignored: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    @property
    def accepted(self) -> list[T]:
        return [item for item in self.items if not isinstance(item, ApiError)]


def read_batch(body: bytes, decode_item: Callable[[bytes], T]) -> Batch[T]:
    """Decode each item as if it were a separate request. An error outside the items refuses the batch."""
    check_text(body)
    try:
        decodable, fields = body, members_decoder.decode(body)
    except NOT_JSON:
        # An item may be nested too deeply for the decoder. The decodable copy has filler of the same length in its
        # place, so that only that item is refused.
        decodable = make_decodable(body)
        fields = _decode_fields(decodable)
    raw_items = bytes(fields.get("items", b""))
    start = decodable.rfind(raw_items)
    check_bytes(body[:start] + b"null" + body[start + len(raw_items) :] if raw_items else body)
    items = [_read_item(item, decode_item) for item in _items_as_sent(body, decodable, start, _split_items(raw_items))]
    ignored = dict.fromkeys(name for name in fields if name != "items")
    for item in items:
        ignored.update(dict.fromkeys(f"items[].{path}" for path in getattr(item, "ignored", ())))
    return Batch(items, tuple(ignored))


def _decode_fields(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return members_decoder.decode(body)
    except msgspec.ValidationError:
        check_bytes(body)
        raise invalid("", "WRONG_TYPE", "The body must be an object.") from None
    except NOT_JSON as error:
        raise not_json(error) from None


def _items_as_sent(body: bytes, decodable: bytes, start: int, items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the items as they were sent: an item has the same offset in the body as in the decodable copy."""
    for item in items:
        start = decodable.index(item, start)
        yield body[start : start + len(item)]
        start += len(item)


def _split_items(raw_items: bytes) -> list[bytes]:
    if raw_items in (b"", b"null"):
        raise invalid("items", "REQUIRED", "This field is required.")
    try:
        items = _items_decoder.decode(raw_items)
    except msgspec.ValidationError:
        raise invalid("items", "WRONG_TYPE", "It must be a list.") from None
    if not 0 < len(items) <= BATCH_REQUEST_ITEMS_MAX:
        raise invalid("items", "LENGTH", f"It must have 1 to {BATCH_REQUEST_ITEMS_MAX} items.")
    return [bytes(item) for item in items]


def _read_item(item: bytes, decode_item: Callable[[bytes], T]) -> T | ApiError:
    try:
        return decode_item(item)
    except ApiError as error:
        return error


_items_decoder = msgspec.json.Decoder(list[msgspec.Raw])


def batch_response(responses: Iterable[ApiResponse | ApiError], request: RequestContext) -> ApiResponse:
    """Join the encoded responses to the items into the response to the batch request."""
    results = b",".join([encode_result(response, request) for response in responses])
    return ApiResponse(200, b'{"results":[%b]}' % results)


def encode_accepted(status: int, bodies: Iterable[bytes]) -> bytes:
    """Encode the response to a batch whose items were all accepted with the same status."""
    separator = b'},{"status":%d,"body":' % status
    return b'{"results":[{"status":%d,"body":%b}]}' % (status, separator.join(bodies))


def encode_result(response: ApiResponse | ApiError, request: RequestContext) -> bytes:
    if isinstance(response, ApiError):
        return b'{"status":%d,"body":%b}' % (response.status, problem_bytes(response, request))
    mismatch = b',"payload_mismatch":true' if PAYLOAD_MISMATCH in response.headers else b""
    return b'{"status":%d,"body":%b%b}' % (response.status, response.body, mismatch)
