"""A condition on the country of the customer's number."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Code, Columns, M
from regulars.conditions.customers import ConditionExplanation, ObservedCountry, StoreNames, Subject
from regulars.conditions.forms.parts import Form, Label, PickedList
from regulars.conditions.kind import Answer, CustomerTests, Kind
from regulars.conditions.labels import Labels

CountryCode = Annotated[str, Meta(pattern="^[A-Z]{2}$")]


class Country(Kind, frozen=True, kw_only=True, tag="country"):
    """The country of the customer's own number."""

    any_of: Annotated[tuple[CountryCode, ...], Meta(max_length=200)]

    FORM: ClassVar = Form(
        kind="country",
        label="Phone number from",
        icon="people",
        parts=(Label(), PickedList(field="any_of", name="countries", noun="country", offered="countries")),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        if not self.any_of:
            yield Fault(f"{place}.any_of", "Name at least one country.")

    def sentence(self, labels: Labels) -> str:
        names = [labels.names.countries.get(code, code) for code in self.any_of]
        return f"Phone number from {labels.list_first(names)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedCountry(country=country) if country is not None:
                return f"Phone number from {labels.names.countries.get(country, country)}"
            case _:
                return "No phone number with a known country"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        country = subject.customer.country
        return Answer(country in self.any_of, ObservedCountry(country))

    def over_columns(self, columns: Columns[M]) -> M:
        return columns.code_in(Code.COUNTRY, self.any_of)
