"""A condition on an attribute of the customer."""

from collections.abc import Collection, Iterator
from typing import ClassVar

from regulars.conditions.check import ConditionContext, Fault, check_key, list_texts_of
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.comparisons import last_of_next
from regulars.conditions.customers import ConditionExplanation, ObservedValue, StoreNames, Subject
from regulars.conditions.field_types import Comparison, Days, Values
from regulars.conditions.forms.parts import AttributeComparison, AttributeKey, Form
from regulars.conditions.kind import Answer, CustomerTests, Kind, References
from regulars.conditions.labels import Labels
from regulars.profiles.model import AttributeKey as Key


class OfAttribute(Kind, frozen=True, kw_only=True, tag="attribute"):
    """The customer's attribute, read by its declared type.

    `value` is for comparisons with one value, `values` for any_of, none_of and between, `days` for comparisons with a
    number of days. A negative comparison (is_not, none_of, not_in_last_days) needs `without_value`: whether customers
    without a value match.
    """

    key: Key
    comparison: Comparison
    value: str | None = None
    values: Values = ()
    days: Days | None = None
    without_value: bool | None = None

    FORM: ClassVar = Form(
        kind="attribute", label="Attribute", icon="tag", is_quick=True, parts=(AttributeKey(), AttributeComparison())
    )

    def references(self) -> References:
        return References(attributes=(self.key,))

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from check_key(self, place, context.attributes, noun="attribute")

    def list_texts(self) -> Iterator[tuple[str, Collection[str]]]:
        yield from list_texts_of(self, "")

    def sentence(self, labels: Labels) -> str:
        return labels.comparison(self)

    def line(self, labels: Labels) -> str:
        # A key is written as it is stored.
        return self.sentence(labels)

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedValue(value=None):
                return f"{self.key} has no value"
            case ObservedValue(value=value, is_parsable=is_parsable):
                return f"{self.key} is “{value}”" + ("" if is_parsable else ", which does not fit its type")
            case _:
                return self.sentence(labels)

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        value = subject.customer.attributes.get(self.key)
        test = tests.find_test(self, subject.today)
        if test is None:
            return Answer(None, ObservedValue(value))
        holds = test(value)
        return Answer(holds, ObservedValue(value, is_parsable=holds is not None))

    def over_columns(self, columns: Columns[M]) -> M:
        if self.comparison == "anniversary_in_next_days" and self.days is not None:
            return columns.has_anniversary(self.key, first=columns.today, last=last_of_next(self.days, columns.today))
        return columns.compare(self)
