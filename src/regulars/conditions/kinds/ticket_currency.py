"""A condition on the currency of the ticket that triggered a journey."""

from typing import Annotated, ClassVar

from msgspec import Meta

from regulars.conditions.customers import ObservedTicket, Subject
from regulars.conditions.forms.parts import CURRENCIES, Form, Label, PickedList
from regulars.conditions.kind import Answer, CustomerTests, TicketKind
from regulars.conditions.labels import Labels
from regulars.sales.model import Currency


class OfCurrency(TicketKind, frozen=True, kw_only=True, tag="currency"):
    """The ticket was paid in one of these currencies."""

    any_of: Annotated[tuple[Currency, ...], Meta(min_length=1)]

    FORM: ClassVar = Form(
        kind="currency",
        label="Currency",
        is_of_ticket=True,
        parts=(
            Label("Currency of the ticket"),
            PickedList(field="any_of", name="currencies", noun="currency", options=CURRENCIES),
        ),
    )

    def sentence(self, labels: Labels) -> str:
        return f"Paid in {' or '.join(self.any_of)}"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        ticket = subject.ticket
        return Answer(None if ticket is None else ticket.currency in self.any_of, ObservedTicket(ticket))
