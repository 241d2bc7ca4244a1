"""Many callers at the same instant, on two server processes: one row, one execution, equal answers."""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.concurrency.at_once import at_once
from tests.support import samples
from tests.support.client import Answer, Api
from tests.support.server import Server


@pytest.fixture
def callers(api: Api, second_server: Server) -> tuple[Api, Api]:
    return api, api.on(second_server)


@pytest.fixture
def store(api: Api) -> dict[str, Any]:
    stored: dict[str, Any] = api.post("/v1/stores", samples.store()).json()
    return stored


def _count(api: Api, database_url: str, query: str) -> int:
    assert api.tenant is not None
    with psycopg.connect(database_url) as connection:
        row = connection.execute(query, (api.tenant.organization_id,)).fetchone()  # type: ignore[call-overload]  # each caller passes a literal
    assert row is not None
    return int(row[0])


def test_50_requests_with_one_key_run_once_and_get_equal_answers(
    callers: tuple[Api, Api], store: dict[str, Any], api_database_url: str
) -> None:
    key = samples.unique("key")
    content = samples.json_bytes(samples.sale(store["id"], profile_id=samples.unique()))
    answers: list[Answer] = at_once(
        [
            lambda caller=callers[number % 2]: caller.post("/v1/sales-events", content=content, idempotency_key=key)
            for number in range(50)
        ]
    )
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert Counter(answer.is_replay for answer in answers) == {True: 49, False: 1}
    api = callers[0]
    assert _count(api, api_database_url, "SELECT count(*) FROM sales_events WHERE organization_id = %s") == 1
    assert _count(api, api_database_url, "SELECT count(*) FROM idempotency_keys WHERE organization_id = %s") == 1


def test_50_sales_with_one_external_id_are_one_sale(
    callers: tuple[Api, Api], store: dict[str, Any], api_database_url: str
) -> None:
    body = samples.sale(store["id"], profile_id=samples.unique())
    answers: list[Answer] = at_once(
        [
            lambda caller=callers[number % 2]: caller.post(
                "/v1/sales-events", body, idempotency_key=samples.unique("k")
            )
            for number in range(50)
        ]
    )
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 49}
    assert len({samples.json_bytes(answer.json()["sales_event"]) for answer in answers}) == 1
    states = Counter(answer.json()["automation"]["state"] for answer in answers)
    assert states == {"eligible": 1, "not_applicable": 49}
    assert _count(callers[0], api_database_url, "SELECT count(*) FROM sales_events WHERE organization_id = %s") == 1


def test_64_sales_of_an_unknown_customer_make_one_light_profile(
    callers: tuple[Api, Api], store: dict[str, Any], api_database_url: str
) -> None:
    customer = samples.unique("customer")
    bodies = [samples.sale(store["id"], profile_id=customer) for _ in range(64)]
    answers: list[Answer] = at_once(
        [
            lambda caller=callers[number % 2], body=body: caller.post("/v1/sales-events", body)
            for number, body in enumerate(bodies)
        ]
    )
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json()["sales_event"]["profile"]["id"] for answer in answers}) == 1
    assert _count(callers[0], api_database_url, "SELECT count(*) FROM profiles WHERE organization_id = %s") == 1


def test_64_upserts_of_one_profile_create_it_once_and_lose_no_attribute(callers: tuple[Api, Api]) -> None:
    name = samples.unique()
    answers: list[Answer] = at_once(
        [
            lambda caller=callers[number % 2], n=number: caller.post(
                "/v1/profiles", {"external_id": name, "attributes": {f"k{n}": "v"}}
            )
            for number in range(64)
        ]
    )
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 63}
    assert len(callers[0].get(f"/v1/profiles/{name}").json()["attributes"]) == 64


def test_64_upserts_of_one_store_create_it_once(callers: tuple[Api, Api]) -> None:
    body = samples.store()
    answers: list[Answer] = at_once(
        [lambda caller=callers[number % 2]: caller.post("/v1/stores", body) for number in range(64)]
    )
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 63}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_64_opt_ins_and_opt_outs_of_one_number_end_as_their_times_say(callers: tuple[Api, Api]) -> None:
    number = samples.phone()
    acts: list[Callable[[], Answer]] = []
    for place in range(64):
        caller, moment = callers[place % 2], samples.ago(minutes=100 - place)
        if place % 4 < 2:
            body = samples.opt_in(phone_number=number, consented_at=moment)
            acts.append(lambda caller=caller, body=body: caller.post("/v1/subscriptions/opt-in", body))
        else:
            out = {"phone_number": number, "unsubscribed_at": moment}
            acts.append(lambda caller=caller, out=out: caller.post("/v1/subscriptions/opt-out", out))
    answers = at_once(acts)
    assert {answer.status for answer in answers} <= {200, 201}
    assert Counter(answer.status for answer in answers)[201] <= 1
    api = callers[0]
    [subscription] = api.pages("/v1/subscriptions", phone_number=number)
    # The latest of the 64 moments belongs to an opt-out.
    assert subscription["status"] == "UNSUBSCRIBED"
    history = api.pages(f"/v1/subscriptions/{subscription['id']}/history", limit=50)
    assert len(history) == 64
    assert [entry["sequence"] for entry in history] == list(range(1, 65))
    for earlier, later in itertools.pairwise(history):
        assert later["previous_hash"] == earlier["hash"]
