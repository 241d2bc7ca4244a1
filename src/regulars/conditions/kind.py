"""The base of every kind of condition. A kind is one file of `kinds`: its fields, its faults, its form, its labels, its
answer for one customer, and its answer over the columns of all customers. Its docstring is the description in the JSON
Schema and in docs/conditions.md.

The defaults here are those of a kind that refers to nothing and needs only the row of the customer. A kind
has two more functions, `answer` for one customer and `over_columns` for all.
"""

from collections.abc import Collection, Iterator
from datetime import date
from typing import ClassVar, NamedTuple
from uuid import UUID

from regulars.catalog.model import spell
from regulars.conditions.check import ConditionContext, Fault, is_valid_comparison
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.comparisons import ValueTest
from regulars.conditions.customers import ConditionExplanation, Observation, SaleLine, StoreNames
from regulars.conditions.field_types import OfProperty, Strict, ValueComparison
from regulars.conditions.forms.parts import Form
from regulars.conditions.labels import Labels


class Answer(NamedTuple):
    """Whether a condition holds for a customer (None: unknown), and the value that decided it."""

    holds: bool | None
    observation: Observation | None


class References(NamedTuple):
    """What a condition refers to, as it writes it: keys, external ids or ids."""

    attributes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    campaigns: tuple[str, ...] = ()


class Needs(NamedTuple):
    """What a condition reads of a customer beside the row: the first day of sales and of texts, None for no sales or
    texts, and whether sales have lines."""

    sales_since: date | None = None
    with_lines: bool = False
    texts_since: date | None = None
    with_consent: bool = False


class Kind(Strict, frozen=True, tag_field="type", kw_only=True):
    FORM: ClassVar[Form]

    def form(self) -> Form:
        """The form that shows this condition; a kind may have several."""
        return self.FORM

    def references(self) -> References:
        return References()

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        """The faults of the fields; `place` is the path of the condition in the definition."""
        yield from ()

    def list_texts(self) -> Iterator[tuple[str, Collection[str]]]:
        """The texts that must not be empty, by their place in the condition."""
        yield from ()

    def needs(self, today: date) -> Needs:
        return Needs()

    def sentence(self, labels: Labels) -> str:
        raise NotImplementedError

    def line(self, labels: Labels) -> str:
        """The condition within a longer line."""
        sentence = self.sentence(labels)
        return sentence[:1].lower() + sentence[1:]

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        """The value of the customer that decided the condition."""
        return self.sentence(labels)


class TicketKind(Kind, frozen=True, kw_only=True):
    """A condition on the ticket that triggered a journey. In a segment it is a fault, and unknown for all customers."""

    def over_columns(self, columns: Columns[M]) -> M:
        return columns.unknown()


class CustomerTests:
    """What kinds look up to answer for one customer; each `ValueTest` is created once and used for all customers."""

    def __init__(self, context: ConditionContext) -> None:
        self.context = context
        self._tests: dict[tuple[ValueComparison, date], ValueTest | None] = {}

    def find_test(self, compared: ValueComparison, today: date) -> ValueTest | None:
        """The test of a comparison; None if the key is unknown, or if its type does not allow the comparison."""
        if (compared, today) not in self._tests:
            context = self.context
            types = context.properties if isinstance(compared, OfProperty) else context.attributes
            test = None
            if is_valid_comparison(compared, types):
                declared, allowed = types[compared.key]
                test = ValueTest(compared, declared=declared, allowed_values=allowed, today=today, zone=context.zone)
            self._tests[compared, today] = test
        return self._tests[compared, today]

    def find_store_ids(self, stores: Collection[str]) -> set[UUID]:
        return {self.context.stores[store] for store in stores if store in self.context.stores}

    def matches_line(
        self, line: SaleLine, products: Collection[str], compared: OfProperty | None, today: date
    ) -> bool | None:
        """Whether a line has one of the products, with the property; None if the property cannot be parsed."""
        if line.properties is None or (products and line.product_id not in products):
            return False
        if compared is None:
            return True
        # A property is compared as text.
        value, test = line.properties.get(compared.key), self.find_test(compared, today)
        return None if test is None else test(None if value is None else spell(value))


def is_within(value: int, low: float | None, high: float | None, *, none: bool = False) -> bool:
    """Whether a value is within the limits. `none` means at most 0, since the net of a customer with only returns is
    below 0."""
    if none:
        return value <= 0
    return (low is None or value >= low) and (high is None or value <= high)


def any_of(results: Collection[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False
