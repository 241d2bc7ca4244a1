"""The errors of texts; each message is one sentence for the user."""


class MessagingError(Exception):
    """What was requested is not possible."""


class SettingRefused(MessagingError):
    pass
