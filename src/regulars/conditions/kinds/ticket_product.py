"""A condition on the products of the ticket that triggered a journey."""

from collections.abc import Collection, Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault, check_key, list_texts_of
from regulars.conditions.customers import ObservedTicket, Subject
from regulars.conditions.field_types import OfProperty
from regulars.conditions.forms.parts import Form, Label, TicketProduct
from regulars.conditions.kind import Answer, CustomerTests, References, TicketKind, any_of
from regulars.conditions.labels import Labels


class OfProduct(TicketKind, frozen=True, kw_only=True, tag="product"):
    """A line of the ticket has one of these products, or a product with this property, or both."""

    any_of: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    property: OfProperty | None = None

    FORM: ClassVar = Form(
        kind="product", label="Product", is_of_ticket=True, parts=(Label("Product on the ticket"), TicketProduct())
    )

    def references(self) -> References:
        return References(properties=() if self.property is None else (self.property.key,))

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        if not self.any_of and self.property is None:
            yield Fault(place, "The product has no condition; name products or a property.")
        if self.property is not None:
            yield from check_key(self.property, f"{place}.property", context.properties, noun="product property")

    def list_texts(self) -> Iterator[tuple[str, Collection[str]]]:
        if self.property is not None:
            yield from list_texts_of(self.property, "property.")
        yield "any_of", self.any_of

    def sentence(self, labels: Labels) -> str:
        of = f" of {labels.list_first(self.any_of)}" if self.any_of else ""
        where = "" if self.property is None else f" where {labels.comparison(self.property)}"
        return f"The ticket has a product{of}{where}"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        ticket = subject.ticket
        if ticket is None:
            return Answer(None, ObservedTicket(None))
        matches = [tests.matches_line(it, self.any_of, self.property, subject.today) for it in ticket.lines]
        return Answer(any_of(matches), ObservedTicket(ticket))
