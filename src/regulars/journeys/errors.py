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
    """The state of the journey or run does not allow the action."""


class DraftTooLarge(JourneyError):
    """After the change the draft would have more steps or conditions than a journey may have."""
