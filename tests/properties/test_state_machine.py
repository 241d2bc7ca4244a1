"""Random calls of two organizations against a model in memory: every answer is the one the model expects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.support import samples
from tests.support.client import Answer, Api

BASE = datetime(2024, 1, 1, tzinfo=UTC)

organizations = st.sampled_from([0, 1])
stores = st.sampled_from(["S1", "S2"])
customers = st.sampled_from(["C1", "C2", "a/b"])
tickets = st.sampled_from(["T1", "T2", "T3"])
numbers = st.sampled_from(["+33612345678", "+447400123456"])
hours = st.integers(0, 6)
names = st.sampled_from(["Ada", "Grace", None])
attributes = st.dictionaries(
    st.sampled_from(["tier", "size", "born"]), st.sampled_from(["1", "gold", None]), max_size=3
)


@dataclass
class Consent:
    """The fold of one number's events."""

    opted_in: datetime | None = None
    opted_out: datetime | None = None

    @property
    def is_subscribed(self) -> bool:
        return self.opted_in is not None and (self.opted_out is None or self.opted_in > self.opted_out)

    def opt_in(self, at: datetime) -> str:
        known = [moment for moment in (self.opted_in, self.opted_out) if moment is not None]
        if not known:
            outcome = "created"
        elif at < max(known) or at == self.opted_out:
            outcome = "superseded"
        elif not self.is_subscribed:
            outcome = "resubscribed"
        else:
            outcome = "already_subscribed" if at == self.opted_in else "updated"
        self.opted_in = max(at, self.opted_in or at)
        return outcome

    def opt_out(self, at: datetime) -> str:
        if self.opted_in is not None and at < self.opted_in:
            outcome = "superseded"
        else:
            outcome = "already_unsubscribed" if self.opted_out and not self.is_subscribed else "unsubscribed"
        self.opted_out = max(at, self.opted_out or at)
        return outcome


@dataclass
class Organization:
    """What one organization must see."""

    stores: dict[str, str | None] = field(default_factory=dict)
    profiles: dict[str, tuple[str | None, dict[str, str]]] = field(default_factory=dict)
    # Ticket -> (store, customer, amount), as first recorded; the customer goes when it is erased.
    sales: dict[str, tuple[str, str | None, int]] = field(default_factory=dict)
    consents: dict[str, Consent] = field(default_factory=dict)


class Shops(RuleBasedStateMachine):
    def __init__(self, new_api: Callable[[], Api]) -> None:
        super().__init__()
        self.apis = [new_api(), new_api()]
        self.models = [Organization(), Organization()]
        self.last: tuple[int, str, bytes, str, Answer] | None = None

    def post(self, organization: int, path: str, body: Any) -> Answer:
        content, key = samples.json_bytes(body), samples.unique("key")
        answer = self.apis[organization].post(path, content=content, idempotency_key=key)
        self.last = (organization, path, content, key, answer)
        return answer

    @rule(organization=organizations, code=stores, name=names)
    def upsert_store(self, organization: int, code: str, name: str | None) -> None:
        model = self.models[organization]
        answer = self.post(organization, "/v1/stores", {"external_id": code, "name": name})
        assert answer.status == (200 if code in model.stores else 201)
        model.stores[code] = name
        assert answer.json()["name"] == name

    @rule(organization=organizations, customer=customers, name=names, changes=attributes)
    def upsert_profile(
        self, organization: int, customer: str, name: str | None, changes: dict[str, str | None]
    ) -> None:
        model = self.models[organization]
        body = {"external_id": customer, "first_name": name, "attributes": changes}
        answer = self.post(organization, "/v1/profiles", body)
        assert answer.status == (200 if customer in model.profiles else 201)
        known = model.profiles.get(customer, (None, {}))[1]
        model.profiles[customer] = (name, _merged(known, changes))
        assert (answer.json()["first_name"], answer.json()["attributes"]) == model.profiles[customer]

    @rule(organization=organizations, customer=customers, changes=attributes)
    def set_attributes(self, organization: int, customer: str, changes: dict[str, str | None]) -> None:
        model = self.models[organization]
        path = f"/v1/profiles/{customer.replace('/', '%2F')}/attributes"
        answer = self.post(organization, path, {"attributes": changes})
        if customer not in model.profiles:
            assert answer.refused == (404, "PROFILE_NOT_FOUND")
            return
        name, known = model.profiles[customer]
        model.profiles[customer] = (name, _merged(known, changes))
        assert answer.json()["attributes"] == model.profiles[customer][1]

    @rule(organization=organizations, customer=customers)
    def erase(self, organization: int, customer: str) -> None:
        model = self.models[organization]
        answer = self.apis[organization].delete(f"/v1/profiles/{customer.replace('/', '%2F')}")
        # An erasure also takes the person out of stored answers, so the last one may not be the same again.
        self.last = None
        assert answer.status == (204 if customer in model.profiles else 404)
        model.profiles.pop(customer, None)
        for ticket, (store, buyer, amount) in model.sales.items():
            if buyer == customer:
                model.sales[ticket] = (store, None, amount)

    @rule(
        organization=organizations, ticket=tickets, store=stores, buyer=customers | st.none(), amount=st.integers(0, 3)
    )
    def record_sale(self, organization: int, ticket: str, store: str, buyer: str | None, amount: int) -> None:
        model = self.models[organization]
        body = samples.sale(store, external_id=ticket, profile_id=buyer, total_amount_cents=amount)
        answer = self.post(organization, "/v1/sales-events", body)
        if ticket in model.sales:
            assert answer.status == 200
            assert answer.json()["automation"] == {"state": "not_applicable"}
        elif store not in model.stores:
            assert answer.refused == (404, "STORE_NOT_FOUND")
            return
        else:
            assert answer.status == 201
            assert answer.json()["automation"] == {"state": "eligible" if buyer else "not_applicable"}
            model.sales[ticket] = (store, buyer, amount)
            if buyer is not None:
                model.profiles.setdefault(buyer, (None, {}))
        assert _summary(answer.json()["sales_event"]) == model.sales[ticket]

    @rule(organization=organizations, number=numbers, hour=hours)
    def opt_in(self, organization: int, number: str, hour: int) -> None:
        at = BASE + timedelta(hours=hour)
        consent = self.models[organization].consents.setdefault(number, Consent())
        body = samples.opt_in(phone_number=number, consented_at=samples.at(at))
        answer = self.post(organization, "/v1/subscriptions/opt-in", body)
        outcome = consent.opt_in(at)
        assert answer.json()["outcome"] == outcome
        assert answer.status == (201 if outcome == "created" else 200)
        _assert_shows(answer.json()["subscription"], consent)

    @rule(organization=organizations, number=numbers, hour=hours)
    def opt_out(self, organization: int, number: str, hour: int) -> None:
        at = BASE + timedelta(hours=hour)
        consent = self.models[organization].consents.setdefault(number, Consent())
        body = {"phone_number": number, "unsubscribed_at": samples.at(at)}
        answer = self.post(organization, "/v1/subscriptions/opt-out", body)
        assert answer.json()["outcome"] == consent.opt_out(at)
        _assert_shows(answer.json()["subscription"], consent)

    @precondition(lambda self: self.last is not None)
    @rule()
    def repeat_the_last_write(self) -> None:
        assert self.last is not None
        organization, path, content, key, first = self.last
        again = self.apis[organization].post(path, content=content, idempotency_key=key)
        assert again.is_replay
        assert (again.status, again.body) == (first.status, first.body)

    @rule(organization=organizations, customer=customers)
    def read_profile(self, organization: int, customer: str) -> None:
        answer = self.apis[organization].get(f"/v1/profiles/{customer.replace('/', '%2F')}")
        expected = self.models[organization].profiles.get(customer)
        if expected is None:
            assert answer.refused == (404, "PROFILE_NOT_FOUND")
        else:
            assert (answer.json()["first_name"], answer.json()["attributes"]) == expected

    @rule(organization=organizations)
    def read_everything(self, organization: int) -> None:
        api, model = self.apis[organization], self.models[organization]
        assert {store["external_id"]: store["name"] for store in api.pages("/v1/stores", limit=1)} == model.stores
        profiles = api.pages("/v1/profiles", limit=2)
        assert {p["external_id"]: (p["first_name"], p["attributes"]) for p in profiles} == model.profiles
        sales = api.pages("/v1/sales-events", limit=2)
        assert {sale["external_id"]: _summary(sale) for sale in sales} == model.sales
        subscriptions = api.pages("/v1/subscriptions", limit=1)
        assert {subscription["phone_number"] for subscription in subscriptions} == set(model.consents)
        for subscription in subscriptions:
            _assert_shows(subscription, model.consents[subscription["phone_number"]])

    @invariant()
    def every_sale_has_its_store(self) -> None:
        for model in self.models:
            assert all(store in model.stores for store, _, _ in model.sales.values())


def _merged(known: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**known, **changes}.items() if value is not None}


def _summary(sale: dict[str, Any]) -> tuple[str, str | None, int]:
    profile = sale["profile"]
    return sale["store"]["external_id"], profile and profile["external_id"], sale["total_amount_cents"]


def _assert_shows(subscription: dict[str, Any], consent: Consent) -> None:
    assert subscription["status"] == ("SUBSCRIBED" if consent.is_subscribed else "UNSUBSCRIBED")
    expected = None if consent.is_subscribed or consent.opted_out is None else samples.at(consent.opted_out)
    assert subscription["unsubscribed_at"] == expected


def test_random_calls_of_two_organizations_agree_with_the_model(new_api: Callable[[], Api]) -> None:
    run_state_machine_as_test(
        lambda: Shops(new_api), settings=settings(max_examples=settings().max_examples // 4, stateful_step_count=40)
    )
