"""A condition on the consent state of the customer."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault, check_stores, check_when
from regulars.conditions.column_protocol import Code, Columns, M, Moment
from regulars.conditions.comparisons import holds_on
from regulars.conditions.customers import ConditionExplanation, ObservedConsent, StoreNames, Subject
from regulars.conditions.field_types import ConsentState, When
from regulars.conditions.field_types import References as StoreReferences
from regulars.conditions.forms.parts import Choice, ConsentDetails, Form, Label, YesNo
from regulars.conditions.kind import Answer, CustomerTests, Kind, Needs, References
from regulars.conditions.labels import SOURCES, STATES, Labels
from regulars.consent.model import ConsentSource

NOT_STATES: Final = {
    "may_be_texted": "May not be texted",
    "withdrawn": "Has not opted out",
    "never_asked": "Was asked for consent",
    "do_not_contact": "Is not “do not contact”",
}


class Consent(Kind, frozen=True, kw_only=True, tag="consent"):
    """The consent state of the customer, as `/v1/subscriptions/check` decides it (`"is": false`: any other state).

    `sources`, `stores` and `since` are those of the consent or withdrawal that decides the state, so they go with
    `may_be_texted` and `withdrawn`.
    """

    state: ConsentState
    is_: bool = msgspec.field(name="is", default=True)
    sources: Annotated[tuple[ConsentSource, ...], Meta(max_length=13)] = ()
    stores: StoreReferences = ()
    since: When | None = None

    FORM: ClassVar = Form(
        kind="consent",
        label="Consent",
        icon="consent",
        is_quick=True,
        parts=(
            Label(),
            YesNo(field="is", name="is", yes="is:", no="is not:", label="Is or is not"),
            Choice(
                field="state",
                name="state",
                options=tuple(STATES.items()),
                default="may_be_texted",
                label="Consent",
                has_focus=True,
            ),
            ConsentDetails(),
        ),
    )

    def references(self) -> References:
        return References(stores=self.stores)

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        if self.state in {"never_asked", "do_not_contact"} and (self.sources or self.stores or self.since is not None):
            yield Fault(place, "Source, store and since go with may_be_texted and withdrawn.")
        yield from check_stores(self.stores, f"{place}.stores", context)
        if self.since is not None:
            yield from check_when(self.since, f"{place}.since", day_may_be_missing=False)

    def needs(self, today: date) -> Needs:
        return Needs(with_consent=True)

    def sentence(self, labels: Labels) -> str:
        sentence = (STATES if self.is_ else NOT_STATES)[self.state]
        if self.sources:
            sources = [SOURCES.get(source, source) for source in self.sources]
            sentence += f", source {labels.list_first(sources)}"
        if self.stores:
            sentence += ", store " + " or ".join(labels.stores(self.stores))
        return sentence if self.since is None else sentence + labels.when(self.since)

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        if not isinstance(explanation.observation, ObservedConsent):
            return self.sentence(labels)
        consent = explanation.observation.consent
        since = "" if consent.since is None else f" since {labels.format.full_day(consent.since)}"
        source = "" if consent.source is None else f", source {SOURCES.get(consent.source, consent.source)}"
        store = "" if consent.store_id is None else f", store {stores.get(consent.store_id, 'not known')}"
        return f"{STATES[consent.state]}{since}{source}{store}"

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        consent = subject.customer.consent
        holds = consent.state == self.state
        if self.sources:
            holds &= consent.source in self.sources
        if self.stores:
            holds &= consent.store_id in tests.find_store_ids(self.stores)
        if self.since is not None:
            holds &= consent.since is not None and holds_on(self.since, consent.since, subject.today)
        return Answer(holds is self.is_, ObservedConsent(consent))

    def over_columns(self, columns: Columns[M]) -> M:
        holds = columns.consent_is(self.state)
        if self.sources:
            holds = holds & columns.code_in(Code.CONSENT_SOURCE, self.sources)
        if self.stores:
            holds = holds & columns.code_in(Code.CONSENT_STORE, self.stores)
        if self.since is not None:
            holds = holds & columns.on_day(Moment.CONSENT_DECIDED, self.since)
        return holds if self.is_ else ~holds
