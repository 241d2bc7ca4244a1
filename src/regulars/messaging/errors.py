"""The refusals of this room; each message is one sentence for the user."""


class MessagingError(Exception):
    """Base of all of them."""


class ReplyNotFound(MessagingError):
    pass


class ReplyAlreadyDecided(MessagingError):
    pass


class TextNotFound(MessagingError):
    pass


class NotUnknown(MessagingError):
    """Only a text whose delivery is unknown, or that failed, is sent again."""


class SettingRefused(MessagingError):
    pass
