"""What the room of stores refuses."""

from regulars.kit.errors import ApiError


class StoreNotFound(ApiError):
    status, code, title = 404, "STORE_NOT_FOUND", "No such store"
    cause = "No store of your organization has this `external_id` or `store_` id. Stores are never created by a sale."
    fix = "Send the store with `POST /v1/stores` first."
    retry = "Yes, after the store exists, with a new Idempotency-Key."
