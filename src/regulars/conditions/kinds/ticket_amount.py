"""A condition on the amount of the ticket that triggered a journey."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault, check_limits
from regulars.conditions.customers import ObservedTicket, Subject
from regulars.conditions.forms.parts import Form, Label, Limits
from regulars.conditions.kind import Answer, CustomerTests, TicketKind, is_within
from regulars.conditions.labels import Labels, format_cents

AmountCents = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]


class OfAmount(TicketKind, frozen=True, kw_only=True, tag="amount"):
    """The amount of the ticket, paid or refunded."""

    at_least_cents: AmountCents | None = None
    at_most_cents: AmountCents | None = None

    FORM: ClassVar = Form(
        kind="amount",
        label="Amount",
        is_of_ticket=True,
        is_quick=True,
        parts=(Label("Amount of the ticket"), Limits("cents")),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from check_limits(self.at_least_cents, self.at_most_cents, place)

    def sentence(self, labels: Labels) -> str:
        amounts = (self.at_least_cents, self.at_most_cents)
        limits = [None if cents is None else labels.text(format_cents(cents)) for cents in amounts]
        return f"The ticket is {labels.limits(*limits) if any(limits) else 'of any amount'}"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        ticket, low, high = subject.ticket, self.at_least_cents, self.at_most_cents
        return Answer(None if ticket is None else is_within(ticket.amount_cents, low, high), ObservedTicket(ticket))
