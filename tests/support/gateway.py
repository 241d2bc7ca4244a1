"""A provider of texts in the test's hands, and sending hours that are always open."""

from collections.abc import Awaitable, Callable

from regulars.texts.providers.base import Accepted, Outcome, OutgoingText
from regulars.texts.settings.model import OpenHours, SendHoursRule
from regulars.texts.settings.store import Texting

ALWAYS = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)
OPEN = dict.fromkeys(("FR", "CH", "DE", "US"), ALWAYS)


def only_on(weekday: int) -> SendHoursRule:
    return SendHoursRule(days=tuple(ALWAYS.days[0] if day == weekday else None for day in range(7)), on_holidays=True)


class Gateway:
    """Records each text, and accepts it or responds with `answer`, or with what it returns for the text."""

    def __init__(self) -> None:
        self.sent: list[OutgoingText] = []
        self.answer: Outcome | Callable[[OutgoingText], Awaitable[Outcome]] | None = None

    async def send(self, text: OutgoingText, texting: Texting) -> Outcome:
        self.sent.append(text)
        if callable(self.answer):
            return await self.answer(text)
        return self.answer or Accepted(f"sid-{text.text_id}")
