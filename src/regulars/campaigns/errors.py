"""The errors of the campaigns package; each message is one sentence for the user."""

from regulars.campaigns.confirmed_numbers import Question
from regulars.kit.refusals import NotPossible


class QuestionNotAnswered(NotPossible):
    """The campaign asks to confirm numbers, and the user confirmed none or others; `question` is what it asks now."""

    def __init__(self, sentence: str, question: Question | None) -> None:
        super().__init__(sentence)
        self.question = question


class ApprovalNeeded(NotPossible):
    """The campaign exceeds the limit above which another person must approve it."""
