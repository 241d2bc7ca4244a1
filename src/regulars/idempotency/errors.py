"""The API errors about the `Idempotency-Key` header."""

from regulars.kit.errors import RETRY_SOON, SAME_KEY, ApiError


class InvalidIdempotencyKey(ApiError):
    status, code, title = 400, "INVALID_IDEMPOTENCY_KEY", "The Idempotency-Key header cannot be used"
    cause = (
        "The Idempotency-Key header is empty, longer than 255 characters, has other than visible ASCII characters, or"
        " is sent twice."
    )
    fix = "Send one UUID per logical operation."
    retry = "Yes, with a usable key: nothing ran."


class IdempotencyConflict(ApiError):
    status, code, title = 409, "IDEMPOTENCY_CONFLICT", "The Idempotency-Key was used with another request"
    cause = (
        "The Idempotency-Key was used in the last 24 hours with another method, path, query or body. One space more"
        " is another body."
    )
    fix = "Use one key per logical operation, and keep the bytes you sent for its retries."
    retry = "Yes, with a new key if this is a new operation."


class IdempotencyInProgress(ApiError):
    status, code, title = 409, "IDEMPOTENCY_IN_PROGRESS", "The first request with this Idempotency-Key is still running"
    cause = "The first request with this Idempotency-Key has not finished."
    fix = "Wait as long as `Retry-After` says."
    retry = f"Yes, {SAME_KEY}."
    own_headers = RETRY_SOON
