"""The errors of the campaigns package; each message is one sentence for the user."""

from regulars.campaigns.confirmed_numbers import Question


class CampaignError(Exception):
    """Base class."""


class DefinitionRefused(CampaignError):
    """The definition cannot be read, or has faults; `place` is the path of the first one, or empty."""

    def __init__(self, sentence: str, *, place: str = "") -> None:
        super().__init__(f"{place}: {sentence}" if place else sentence)
        self.place = place
        self.sentence = sentence


class CampaignNotFound(CampaignError):
    pass


class NotPossible(CampaignError):
    """The campaign's state does not allow the action."""


class QuestionNotAnswered(CampaignError):
    """The campaign asks to confirm numbers, and the user confirmed none or others; `question` is what it asks now."""

    def __init__(self, sentence: str, question: Question | None) -> None:
        super().__init__(sentence)
        self.question = question


class ApprovalNeeded(CampaignError):
    """The campaign exceeds the limit above which another person must approve it."""
