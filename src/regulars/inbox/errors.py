"""The errors of the inbox; each message is one sentence for the user."""

from regulars.texts.errors import MessagingError


class ReplyNotFound(MessagingError):
    pass


class ReplyAlreadyDecided(MessagingError):
    pass


class NotAnswerable(MessagingError):
    """The reply is a keyword such as STOP, which needs no answer."""
