"""The errors of the messaging package; each message is one sentence for the user."""


class MessagingError(Exception):
    """Base of the errors of this package."""


class ReplyNotFound(MessagingError):
    pass


class ReplyAlreadyDecided(MessagingError):
    pass


class TextNotFound(MessagingError):
    pass


class NotAnswerable(MessagingError):
    """The reply is a keyword such as STOP, which needs no answer."""


class NotResendable(MessagingError):
    """The text cannot be sent again, because of its state or its origin."""


class SettingRefused(MessagingError):
    pass
