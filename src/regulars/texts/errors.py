"""The errors of texts; each message is one sentence for the user."""

from regulars.kit.refusals import Refused


class MessagingError(Refused):
    """What was requested is not possible."""


class SettingRefused(MessagingError):
    pass
