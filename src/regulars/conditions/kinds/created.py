"""A condition on the day on which the customer became known."""

from collections.abc import Iterator
from typing import ClassVar

from regulars.conditions.check import ConditionContext, Fault, check_when
from regulars.conditions.column_protocol import Columns, M, Moment
from regulars.conditions.comparisons import holds_on
from regulars.conditions.customers import ConditionExplanation, ObservedDay, StoreNames, Subject
from regulars.conditions.field_types import When
from regulars.conditions.forms.parts import Day, Form, Label
from regulars.conditions.kind import Answer, CustomerTests, Kind
from regulars.conditions.labels import Labels


class Created(Kind, frozen=True, kw_only=True, tag="created"):
    """The day on which the customer was created."""

    when: When

    FORM: ClassVar = Form(
        kind="created",
        label="Became a customer",
        icon="calendar",
        defaults={"when_days": "30"},
        parts=(Label(), Day()),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from check_when(self.when, f"{place}.when", day_may_be_missing=False)

    def sentence(self, labels: Labels) -> str:
        return f"Became a customer{labels.when(self.when)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedDay(day=day) if day is not None:
                return f"Customer since {labels.format.full_day(day)}"
            case _:
                return self.sentence(labels)

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        created = subject.customer.created
        return Answer(holds_on(self.when, created, subject.today), ObservedDay(created))

    def over_columns(self, columns: Columns[M]) -> M:
        return columns.on_day(Moment.CREATED, self.when)
