"""The one error of processes that stand in each other's way."""


class InUseError(Exception):
    """Another process has what this one needs; the message is one sentence for the person who runs the command."""
