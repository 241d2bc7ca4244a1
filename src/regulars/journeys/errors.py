"""What this room refuses; each message is one sentence for the person who asked."""


class JourneyError(Exception):
    """Base of all of them."""


class DefinitionRefused(JourneyError):
    """It cannot be read, or cannot run."""


class JourneyNotFound(JourneyError):
    pass


class RunNotFound(JourneyError):
    pass


class NotPossible(JourneyError):
    """The journey, or the run, is in a state in which this cannot be done."""


class DraftTooLarge(JourneyError):
    """The change would leave more steps or conditions than a journey may have."""
