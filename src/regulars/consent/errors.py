"""The API errors of opt-ins, opt-outs and subscriptions."""

from regulars.kit.errors import ApiError


class ConsentedAtInFuture(ApiError):
    status, code, title = 400, "CONSENTED_AT_IN_FUTURE", "The consent lies in the future"
    cause = "`consented_at` is more than five minutes ahead of the service's clock."
    fix = "Send the moment at which the person agreed, with its offset."
    retry = "Yes, once the moment has passed, with a new Idempotency-Key."


class InvalidPhoneNumber(ApiError):
    status, code, title = 400, "INVALID_PHONE_NUMBER", "The phone number cannot be read"
    cause = "A consent is about one number, and this text is not one in international format."
    fix = "Send a plus, the country code and the number: `+33612345678`. Extensions are not allowed."


class SubscriptionNotFound(ApiError):
    status, code, title = 404, "SUBSCRIPTION_NOT_FOUND", "No such subscription"
    cause = "There is no such subscription, or an opt-out by profile found no number to withdraw."
    fix = "Opt out by `phone_number`, which also records a number that was never seen before."
