"""A condition on the membership of another segment."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.customers import ConditionExplanation, ObservedSegment, StoreNames, Subject
from regulars.conditions.field_types import Reference
from regulars.conditions.forms.parts import Form, ObjectChoice, YesNo
from regulars.conditions.kind import Answer, CustomerTests, Kind, References
from regulars.conditions.labels import Labels


class InSegment(Kind, frozen=True, kw_only=True, tag="segment"):
    """The customer is in a segment, by its current version (`"is": false`: is not)."""

    id: Reference
    is_: bool = msgspec.field(name="is", default=True)

    FORM: ClassVar = Form(
        kind="segment",
        label="Other segment",
        icon="filter",
        is_quick=True,
        parts=(
            YesNo(field="is", name="is", yes="In the segment", no="Not in the segment", label="Whether"),
            ObjectChoice(field="id", name="segment", offered="segments", noun="segment"),
        ),
    )

    def references(self) -> References:
        return References(segments=(self.id,))

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        if self.id not in context.segments:
            yield Fault(f"{place}.id", f"There is no segment {self.id}.")
        elif faults := context.segments[self.id].faults:
            message = f"The segment {self.id} has no members: {faults[0].message}"
            yield Fault(f"{place}.id", message, is_warning=True)

    def sentence(self, labels: Labels) -> str:
        verb = "In" if self.is_ else "Not in"
        return f"{verb} the segment {labels.names.segments.get(self.id, self.id)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedSegment(name=name, version=version, is_faulty=is_faulty):
                is_in = explanation.holds is self.is_
                verb = "In" if is_in else "Not known whether in" if explanation.holds is None else "Not in"
                fault = ", which has no members until it is fixed" if is_faulty else ""
                return f"{verb} {name}, version {version}{fault}"
            case _:
                return self.sentence(labels)

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        is_in = subject.segments.get(self.id)
        segment = tests.context.segments.get(self.id)
        observed = None
        if segment is not None:
            observed = ObservedSegment(segment.name, segment.version, is_faulty=bool(segment.faults))
        return Answer(None if is_in is None else is_in is self.is_, observed)

    def over_columns(self, columns: Columns[M]) -> M:
        is_in = columns.in_segment(self.id)
        return is_in if self.is_ else ~is_in
