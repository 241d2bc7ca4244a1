"""A condition on the store of the ticket that triggered a journey."""

from collections.abc import Collection, Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault, check_stores
from regulars.conditions.customers import ObservedTicket, Subject
from regulars.conditions.forms.parts import Form, Label, StoreList
from regulars.conditions.kind import Answer, CustomerTests, References, TicketKind
from regulars.conditions.labels import Labels


class OfStore(TicketKind, frozen=True, kw_only=True, tag="store"):
    """The ticket is from one of these stores, by external_id or canonical id."""

    any_of: Annotated[tuple[str, ...], Meta(min_length=1, max_length=200)]

    FORM: ClassVar = Form(
        kind="store", label="Store", is_of_ticket=True, parts=(Label("Store of the ticket"), StoreList("any_of"))
    )

    def references(self) -> References:
        return References(stores=self.any_of)

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from check_stores(self.any_of, f"{place}.any_of", context)

    def list_texts(self) -> Iterator[tuple[str, Collection[str]]]:
        yield "any_of", self.any_of

    def sentence(self, labels: Labels) -> str:
        return f"The ticket is of {labels.list_first(labels.stores(self.any_of))}"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        ticket = subject.ticket
        holds = None if ticket is None else ticket.store_id in tests.find_store_ids(self.any_of)
        return Answer(holds, ObservedTicket(ticket))
