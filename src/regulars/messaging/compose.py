"""The text as it leaves: the brand's name before the words, the way to stop behind them."""

import re
from dataclasses import dataclass

from regulars.messaging.parts import PARTS_MAX, Measured, measure
from regulars.messaging.settings.model import Notice


@dataclass(frozen=True, slots=True)
class Composed:
    body: str
    measured: Measured

    @property
    def is_too_long(self) -> bool:
        return self.measured.parts > PARTS_MAX


def compose(words: str, *, brand: str, notice: Notice | None) -> Composed:
    """Every text says who writes and how to stop; where the words already do, nothing is added."""
    body = words.strip()
    if not re.search(rf"(?<!\w){re.escape(brand)}(?!\w)", body):
        body = f"{brand}: {body}"
    if notice is not None and notice.words not in body:
        body = f"{body} {notice.words}"
    return Composed(body, measure(body))
