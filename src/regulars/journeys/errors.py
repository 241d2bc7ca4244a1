"""The errors of the journeys package; each message is one sentence for the user."""


class JourneyError(Exception):
    """Base class."""


class DefinitionRefused(JourneyError):
    """The definition cannot be read, or has faults."""


class JourneyNotFound(JourneyError):
    pass


class RunNotFound(JourneyError):
    pass


class NotPossible(JourneyError):
    """The journey, or the run, is in a state in which this cannot be done."""


class DraftTooLarge(JourneyError):
    """The change would leave more steps or conditions than a journey may have."""
