"""The fixed parts of the OpenAPI document: introduction, tags, response headers and shared parameters."""

from typing import Any, Final

from regulars.idempotency.model import KEY_CHARACTERS_MAX

API_DESCRIPTION: Final = """\
Customers, shops, sales and SMS consent of a retailer. Your own system stays the source of truth: every write is an \
upsert under your own `external_id`, and the last write wins.

**References.** A reference (`profile_id`, `store_id`, `sales_event_id`) is either your `external_id` or the canonical \
id of the resource (`prof_…`, `store_…`, `evt_…`). An `external_id` never starts with one of these prefixes or `sub_`.

**Retries.** Send an `Idempotency-Key` with every write and repeat the very same bytes: the first response comes back, \
marked `Idempotent-Replayed: true`. Retry 408, 409 `IDEMPOTENCY_IN_PROGRESS`, 429, 500 and 503, after `Retry-After` \
where it is given, and with growing pauses.

**Refusals.** Every refusal under `/v1` is `application/problem+json` with a stable `code`. An unknown path is 404 \
`ROUTE_NOT_FOUND`; a known path with another method is 405 `METHOD_NOT_ALLOWED` with `Allow`. `HEAD` is answered \
wherever `GET` is, without the body.

**Keys.** A key has the permission `full` or `ingest`. An `ingest` key may write, and read stores; reading anything \
else and erasing are refused with 403 `FORBIDDEN`. Its responses contain what it sent, ids, outcomes and states. \
They show whether a number may be texted and whether a customer or ticket is known, and no other stored data.

**Tolerance.** New fields, operations and codes may appear within `/v1`; unknown fields of a body are ignored, and \
a success names them in `X-Ignored-Fields`.
"""

TAGS: Final = {
    "Profiles": "Customers, keyed on your own identifier.",
    "Stores": "Physical shops. A sale needs its store to exist.",
    "Subscriptions": "SMS consent per phone number, on an append-only ledger.",
    "Sales events": "Purchases and returns, recorded once each and never changed.",
    "Webhooks": "What is posted to your own systems, signed as Standard Webhooks.",
    "Description": "The interface described for machines.",
}


def _header(description: str, *, is_required: bool = False, **schema: Any) -> dict[str, Any]:
    required = {"required": True} if is_required else {}
    return {"description": description, **required, "schema": {"type": "string", **schema}}


_COUNT: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
HEADERS: Final[dict[str, Any]] = {
    "X-Request-Id": _header(
        "Identifies this request in responses and logs. A valid value sent by the caller is used.",
        minLength=1,
        maxLength=128,
        is_required=True,
    ),
    "X-Content-Type-Options": _header(
        "The body is of the type that Content-Type says.", const="nosniff", is_required=True
    ),
    "Cache-Control": _header(
        "Responses are for their caller alone; no proxy may cache them.", const="no-store", is_required=True
    ),
    "WWW-Authenticate": _header(
        "How to authenticate: with an API key, in the x-api-key header.", const="ApiKey", is_required=True
    ),
    "Content-Encoding": _header(
        "`gzip` where `Accept-Encoding` names it and the page is not small; absent otherwise.", const="gzip"
    ),
    "Vary": _header("Whether the page comes compressed depends on this header of the request.", is_required=True),
    "X-Dry-Run": _header("`true` when the request was a dry run: nothing was stored. Absent otherwise.", const="true"),
    "X-Ignored-Fields": _header(
        "Fields of the body that were ignored because the API does not know them: paths such as "
        "`nmae` or `line_items[].colour`, ten at most and then `...`. Absent when there are none.",
        minLength=1,
        maxLength=1024,
    ),
    "RateLimit-Limit": _header(
        "The burst limit: requests the key may make at once after being idle. Absent without a limit.", **_COUNT
    ),
    "RateLimit-Remaining": _header("Requests the key may still make now.", **_COUNT),
    "RateLimit-Reset": _header("Seconds until the full burst limit is available again.", **_COUNT),
    "Retry-After": _header("Seconds to wait before the same request is worth sending again.", **_COUNT),
    "Idempotent-Replayed": _header(
        "`true` when this is the stored response of the first request with the same Idempotency-Key.", enum=["true"]
    ),
}

PARAMETERS: Final[dict[str, Any]] = {
    "DryRun": {
        "name": "dry_run",
        "in": "query",
        "required": False,
        "description": "`true` gives the response that the call would give, with `X-Dry-Run: true`, and stores and "
        "triggers nothing. Ids of new resources are the nil id of their prefix (`prof_` and zeros), and an "
        "`Idempotency-Key` is ignored.",
        # No default: the PHP clients that openapi-generator generates would send it with every call, as `0`.
        "schema": {"type": "boolean"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "A value of your own for one logical operation, such as a UUID, reused across its retries and "
        "stored for 24 hours. The same key with another request is 409 `IDEMPOTENCY_CONFLICT`.",
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": KEY_CHARACTERS_MAX,
            "pattern": "^[!-~]+$",
            "examples": ["9f2c6f0e-6c0c-4f0e-9a0b-3f6f3a1c7d52"],
        },
    },
}

# The headers of webhooks as prose, because code generators make nothing of the parameters of requests that we send.
EVENT_HEADERS: Final = (
    "Headers: `webhook-id` (the same in every attempt and replay: use it to drop duplicates), `webhook-timestamp`"
    " (seconds since 1970) and `webhook-signature` (`v1,` and an HMAC-SHA256 over id, timestamp and body)."
)
