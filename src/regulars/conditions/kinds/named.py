"""A condition on whether the customer is known by name."""

from typing import ClassVar

import msgspec

from regulars.conditions.column_protocol import Columns, Flag, M
from regulars.conditions.customers import ConditionExplanation, ObservedName, StoreNames, Subject
from regulars.conditions.forms.parts import Form, YesNo
from regulars.conditions.kind import Answer, CustomerTests, Kind
from regulars.conditions.labels import Labels

_KNOWN, _NOT_KNOWN = "Known by name", "Not known by name"


class Named(Kind, frozen=True, kw_only=True, tag="named"):
    """Whether a first or last name is known."""

    is_: bool = msgspec.field(name="is", default=True)

    FORM: ClassVar = Form(
        kind="named",
        label="Name",
        icon="people",
        parts=(YesNo(field="is", name="named", yes=_KNOWN, no=_NOT_KNOWN, label="Name", has_focus=True),),
    )

    def sentence(self, labels: Labels) -> str:
        return _KNOWN if self.is_ else _NOT_KNOWN

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedName(is_known=is_known):
                return _KNOWN if is_known else _NOT_KNOWN
            case _:
                return self.sentence(labels)

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        is_named = subject.customer.is_named
        return Answer(is_named is self.is_, ObservedName(is_named))

    def over_columns(self, columns: Columns[M]) -> M:
        named = columns.flag(Flag.NAMED)
        return named if self.is_ else ~named
