"""What the room of sales refuses."""

from regulars.kit.errors import NO_RETRY, ApiError


class OccurredAtInFuture(ApiError):
    status, code, title = 400, "OCCURRED_AT_IN_FUTURE", "The sale lies in the future"
    cause = "`occurred_at` is later than the service's clock allows (30 seconds, unless set otherwise)."
    fix = "Check the register's clock and its time zone; a local time sent with `Z` is the usual reason."
    retry = "Yes, once the moment has passed, with a new Idempotency-Key."


class SalesEventNotFound(ApiError):
    status, code, title = 404, "SALES_EVENT_NOT_FOUND", "No such sales event"
    cause = "No sales event of your organization has this `external_id` or `evt_` id."
    fix = "Check the reference; percent-encode it as one path segment."
    retry = NO_RETRY
