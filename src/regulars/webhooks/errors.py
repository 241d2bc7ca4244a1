"""Errors about webhooks that the caller can correct; each message is a sentence that says what is wrong."""


class WebhookError(Exception):
    """An error that the caller can correct."""


class DeliveryNotFound(WebhookError):
    pass


class EndpointRefused(WebhookError):
    """The URL, the events or the description is not allowed."""


class NotPossibleNow(WebhookError):
    """The state of the endpoint or of the message does not allow the action."""
