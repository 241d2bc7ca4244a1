"""The errors of texts; each message is one sentence for the user."""


class MessagingError(Exception):
    """Base of the errors of this package."""


class TextNotFound(MessagingError):
    pass


class NotResendable(MessagingError):
    """The text cannot be sent again, because of its state or its origin."""


class SettingRefused(MessagingError):
    pass
