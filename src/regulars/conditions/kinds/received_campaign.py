"""A condition on a campaign that the customer received."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.customers import ConditionExplanation, ObservedCampaign, StoreNames, Subject
from regulars.conditions.field_types import Reference
from regulars.conditions.forms.parts import Form, ObjectChoice, YesNo
from regulars.conditions.kind import Answer, CustomerTests, Kind, References
from regulars.conditions.labels import Labels
from regulars.kit.ids import CAMPAIGN


class ReceivedCampaign(Kind, frozen=True, kw_only=True, tag="received_campaign"):
    """The customer received this campaign: its text was sent or delivered, or its outcome is unknown (`"is": false`:
    did not)."""

    id: Reference
    is_: bool = msgspec.field(name="is", default=True)

    FORM: ClassVar = Form(
        kind="received_campaign",
        label="Received the campaign",
        icon="message",
        is_hidden_without="campaigns",
        parts=(
            YesNo(
                field="is",
                name="is",
                yes="Received the campaign",
                no="Did not receive the campaign",
                label="Whether",
            ),
            ObjectChoice(field="id", name="campaign", offered="campaigns", noun="campaign"),
        ),
    )

    def references(self) -> References:
        return References(campaigns=(self.id,))

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        if CAMPAIGN.decode(self.id) is None:
            yield Fault(f"{place}.id", f"'{self.id}' is not the id of a campaign.")

    def sentence(self, labels: Labels) -> str:
        verb = "Received" if self.is_ else "Did not receive"
        return f"{verb} the campaign {labels.names.campaigns.get(self.id, self.id)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        if not isinstance(explanation.observation, ObservedCampaign):
            return self.sentence(labels)
        return msgspec.structs.replace(self, is_=explanation.observation.is_received).sentence(labels)

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        is_received = CAMPAIGN.decode(self.id) in subject.customer.campaigns
        return Answer(is_received is self.is_, ObservedCampaign(is_received))

    def over_columns(self, columns: Columns[M]) -> M:
        received = columns.got_text(senders=CAMPAIGN.decode_all([self.id]))
        return received if self.is_ else ~received
