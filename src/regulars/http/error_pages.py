"""What each code means to the person who meets it: cause, fix, and whether to send the request again.

The `type` of every refusal points at `/docs/errors`; that page and `docs/errors.md` are both made from this table.
"""

from dataclasses import dataclass
from typing import Final

from regulars.kit import errors
from regulars.kit.errors import ALL_ERRORS, ApiError

INTRODUCTION: Final = (
    "Every refusal under `/v1` has the media type `application/problem+json` (RFC 9457) and these members: `type` (a"
    " link to this page), `title`, `status`, `detail` (a sentence about this very request), `code`, `request_id` (the"
    " same as the `X-Request-Id` header) and, for validation, `errors` with the `field`, `code` and `message` of each"
    " field. Decide on `code`: it never changes its meaning. New codes may appear within `/v1`; treat one you do not"
    " know by its status."
)


@dataclass(frozen=True, slots=True)
class Page:
    cause: str
    fix: str
    retry: str


NO: Final = "No. The same request will be refused again."
SAME_KEY: Final = "with the same Idempotency-Key and the same bytes"

PAGES: Final[dict[type[ApiError], Page]] = {
    errors.InvalidJson: Page(
        "The body is not one JSON document in UTF-8: it is empty, cut off, followed by something else, nested deeper"
        " than 32 levels, or has a NaN, a lone surrogate or a number beyond a double.",
        "Serialise the body with a JSON library. `detail` says where reading stopped.",
        NO,
    ),
    errors.ValidationError: Page(
        "The body or the query does not fit the interface: a required field is missing, or a value has the wrong type,"
        " length, form or range. Query parameters that an operation does not have, or that are given twice, count too.",
        "Look at `errors`: each entry names its field, such as `line_items[0].quantity`.",
        NO,
    ),
    errors.ReservedExternalId: Page(
        "An `external_id` starts with `prof_`, `sub_`, `store_` or `evt_`. These are canonical ids.",
        "Send your own identifier. To refer to an existing resource, use a reference field such as `profile_id`.",
        NO,
    ),
    errors.OccurredAtInFuture: Page(
        "`occurred_at` is later than the service's clock allows (30 seconds, unless set otherwise).",
        "Check the register's clock and its time zone; a local time sent with `Z` is the usual reason.",
        "Yes, once the moment has passed, with a new Idempotency-Key.",
    ),
    errors.ConsentedAtInFuture: Page(
        "`consented_at` is more than five minutes ahead of the service's clock.",
        "Send the moment at which the person agreed, with its offset.",
        "Yes, once the moment has passed, with a new Idempotency-Key.",
    ),
    errors.InvalidPhoneNumber: Page(
        "A consent is about one number, and this text is not one in international format.",
        "Send a plus, the country code and the number: `+33612345678`. Extensions are not allowed.",
        NO,
    ),
    errors.InvalidCursor: Page(
        "The cursor was not given out by this list, for these filters and this organization, or it was cut off.",
        "Pass `next_cursor` on unchanged, together with the same filters. `limit` may differ.",
        "No. Start again without a cursor.",
    ),
    errors.InvalidIdempotencyKey: Page(
        "The Idempotency-Key header is empty, longer than 255 characters, has other than visible ASCII characters, or"
        " is sent twice.",
        "Send one UUID per logical operation.",
        "Yes, with a usable key: nothing ran.",
    ),
    errors.Unauthorized: Page(
        "The `x-api-key` header is missing, sent twice, mistyped, unknown or revoked. The answer does not say which.",
        "Send a live key of your organization in `x-api-key`. A revoked key stops within a second.",
        "Yes, with a valid key: nothing ran.",
    ),
    errors.Forbidden: Page(
        "The key is valid but may only ingest: write, and read stores.",
        "Call with a key that has the permission `full`; an owner or admin of the organization can create one.",
        NO,
    ),
    errors.ProfileNotFound: Page(
        "No profile of your organization has this `external_id` or `prof_` id; it may have been erased. A reference"
        " with a reserved prefix is only ever looked up as a canonical id.",
        "Upsert the profile first. A sale may name a customer you never sent, if it does so by your own `external_id`."
        " If the detail says that the person was erased, do not: stop sending them.",
        "Yes, after the profile exists, with a new Idempotency-Key.",
    ),
    errors.StoreNotFound: Page(
        "No store of your organization has this `external_id` or `store_` id. Stores are never created by a sale.",
        "Send the store with `POST /v1/stores` first.",
        "Yes, after the store exists, with a new Idempotency-Key.",
    ),
    errors.SalesEventNotFound: Page(
        "No sales event of your organization has this `external_id` or `evt_` id.",
        "Check the reference; percent-encode it as one path segment.",
        NO,
    ),
    errors.SubscriptionNotFound: Page(
        "There is no such subscription, or an opt-out by profile found no number to withdraw.",
        "Opt out by `phone_number`, which also records a number that was never seen before.",
        NO,
    ),
    errors.RouteNotFound: Page(
        "Nothing is served at this path: a typing error, a doubled or trailing slash, or a segment that cannot be"
        " decoded.",
        "Compare the path with `GET /v1/openapi.json`.",
        NO,
    ),
    errors.MethodNotAllowed: Page(
        "The path exists, but not with this method.",
        "Use one of the methods in the `Allow` header.",
        NO,
    ),
    errors.RequestTimeout: Page(
        "The body stalled: 15 s of silence, less than 10 KB a second on average after the first 15 s, or 120 s in all."
        " Nothing ran.",
        "Send the body without pauses, in smaller batches on a slow line.",
        f"Yes, {SAME_KEY}.",
    ),
    errors.IdempotencyConflict: Page(
        "The Idempotency-Key was used in the last 24 hours with another method, path, query or body. One space more"
        " is another body.",
        "Use one key per logical operation, and keep the bytes you sent for its retries.",
        "Yes, with a new key if this is a new operation.",
    ),
    errors.IdempotencyInProgress: Page(
        "The first request with this Idempotency-Key has not finished.",
        "Wait as long as `Retry-After` says.",
        f"Yes, {SAME_KEY}.",
    ),
    errors.PayloadTooLarge: Page(
        "The body has more than 1 MiB (8 MiB for batches).",
        "Send fewer items, or leave out what is not needed.",
        NO,
    ),
    errors.UriTooLong: Page(
        "The path and the query have more than 8 KB.",
        "A reference has at most 255 characters and a cursor at most 1,024; something else got into the URL.",
        NO,
    ),
    errors.UnsupportedMediaType: Page(
        "The `Content-Type` is not `application/json` in UTF-8, or the body is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
        "Yes, with the right header: nothing ran.",
    ),
    errors.RateLimited: Page(
        "The key has used up its requests for the moment. Each item of a batch counts as one request.",
        "Wait as long as `Retry-After` says; `RateLimit-Remaining` tells how much is left.",
        f"Yes, {SAME_KEY}: nothing ran.",
    ),
    errors.HeadersTooLarge: Page(
        "All headers together have more than 16 KB.",
        "Send fewer or smaller headers; cookies are not needed.",
        NO,
    ),
    errors.InternalError: Page(
        "Something broke on our side. The request was not carried out.",
        "Send it again; if it keeps failing, report the `request_id`.",
        f"Yes, {SAME_KEY}, with growing pauses.",
    ),
    errors.Unavailable: Page(
        "The database cannot be reached, or too much is waiting to be written. Whether the write took place may be"
        " unknown.",
        "Wait as long as `Retry-After` says. The key and the `external_id` make sure that nothing is written twice.",
        f"Yes, {SAME_KEY}, with growing pauses.",
    ),
}


def anchor(error: type[ApiError]) -> str:
    return error.code.lower().replace("_", "-")


def render_markdown() -> str:
    parts = ["# Errors", INTRODUCTION]
    for error in ALL_ERRORS:
        page = PAGES[error]
        parts.append(
            f'<a id="{anchor(error)}"></a>\n\n## {error.code}\n\n{error.status}: {error.title}.\n\n'
            f"- **Cause.** {page.cause}\n- **Fix.** {page.fix}\n- **Retry.** {page.retry}"
        )
    return "\n\n".join(parts) + "\n"
