"""What this room refuses; each message is one sentence that says what is wrong and what to do."""


class WebhookError(Exception):
    """Whoever asked can put it right."""


class EndpointNotFound(WebhookError):
    pass


class DeliveryNotFound(WebhookError):
    pass


class EndpointRefused(WebhookError):
    """The URL, the events or the description cannot be taken."""


class NotPossibleNow(WebhookError):
    """The endpoint's state does not allow it."""
