"""The refusals of this module; each message is one sentence that says what is wrong and what to do."""


class WebhookError(Exception):
    """An error that the caller can correct."""


class EndpointNotFound(WebhookError):
    pass


class DeliveryNotFound(WebhookError):
    pass


class EndpointRefused(WebhookError):
    """The URL, the events or the description is not allowed."""


class NotPossibleNow(WebhookError):
    """The endpoint's state does not allow it."""
