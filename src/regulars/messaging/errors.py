"""The errors of the messaging package; each message is one sentence for the user."""


class MessagingError(Exception):
    """Base of the errors of this package."""


class ReplyNotFound(MessagingError):
    pass


class ReplyAlreadyDecided(MessagingError):
    pass


class TextNotFound(MessagingError):
    pass


class NotUnknown(MessagingError):
    """The text cannot be sent again: its state is neither unknown nor failed."""


class SettingRefused(MessagingError):
    pass
