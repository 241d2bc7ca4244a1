"""What requests texts; clicks are counted by it."""

from enum import StrEnum


class OriginKind(StrEnum):
    """What requested a text."""

    # A user who writes to one customer.
    PERSON = "person"
    JOURNEY = "journey"
    CAMPAIGN = "campaign"
    # The confirmation of a STOP, and the response to HELP.
    STOP = "stop"
    HELP = "help"
    # A user who answers a customer's reply.
    ANSWER = "answer"
    # A test text to a verified number of the team: it needs no opt-in, is sent at any hour and counts in no cap.
    TEST = "test"
