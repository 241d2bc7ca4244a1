"""A condition on the texts that the customer got."""

from collections.abc import Iterator
from datetime import date
from typing import ClassVar, Final

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.customers import ConditionExplanation, ObservedTexts, StoreNames, Subject
from regulars.conditions.field_types import Days, Reference
from regulars.conditions.forms.parts import Form, TextDetails, YesNo
from regulars.conditions.kind import Answer, CustomerTests, Kind, Needs
from regulars.conditions.labels import Labels
from regulars.kit.clock import first_of_last_days
from regulars.kit.ids import JOURNEY

# Texts and journey runs are deleted some weeks after this age, without an event that would update segments.
TEXTS_DAYS_MAX: Final = 730
TEXTS_OF_JOURNEY_DAYS_MAX: Final = 365


class Texts(Kind, frozen=True, kw_only=True, tag="texts"):
    """Whether the customer got a text in the last `days` (at most 730); from one journey, if it is named (at most
    365)."""

    days: Days
    got: bool = True
    journey: Reference | None = None

    FORM: ClassVar = Form(
        kind="texts",
        label="Texts received",
        icon="message",
        defaults={"days": "30"},
        parts=(
            YesNo(field="got", name="got", yes="Got a text", no="Got no text", label="Texts", has_focus=True),
            TextDetails(),
        ),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        if self.journey is not None and JOURNEY.decode(self.journey) is None:
            yield Fault(f"{place}.journey", f"'{self.journey}' is not the id of a journey.")
        elif self.journey is not None and self.days > TEXTS_OF_JOURNEY_DAYS_MAX:
            message = f"The journey of a text is stored for {TEXTS_OF_JOURNEY_DAYS_MAX} days; enter at most that many."
            yield Fault(f"{place}.days", message)
        elif self.days > TEXTS_DAYS_MAX:
            yield Fault(f"{place}.days", f"Texts are stored for {TEXTS_DAYS_MAX} days; enter at most that many.")

    def needs(self, today: date) -> Needs:
        return Needs(texts_since=first_of_last_days(self.days, today))

    def sentence(self, labels: Labels) -> str:
        journey = "" if self.journey is None else f" from {labels.names.journeys.get(self.journey, self.journey)}"
        verb = "Got a text" if self.got else "Got no text"
        return f"{verb}{journey} in the last {labels.number(self.days)} days"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedTexts(times=times, last=last) if last is not None:
                texts = "1 text" if times == 1 else f"{labels.format.number(times)} texts"
                return f"Got {texts}, last on {labels.format.full_day(last)}"
            case _:
                return "Got no such text"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        journey_id = None if self.journey is None else JOURNEY.decode(self.journey)
        days = [
            text.day
            for text in subject.customer.texts
            if 0 <= (subject.today - text.day).days < self.days
            and (self.journey is None or (journey_id is not None and text.journey_id == journey_id))
        ]
        return Answer(bool(days) is self.got, ObservedTexts(len(days), max(days, default=None)))

    def over_columns(self, columns: Columns[M]) -> M:
        senders = None if self.journey is None else JOURNEY.decode_all([self.journey])
        got = columns.got_text(senders=senders, days=self.days)
        return got if self.got else ~got
