"""One idempotency key used for different things at the same instant: one of them runs, and only one."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.concurrency.at_once import at_once
from tests.support import samples
from tests.support.client import Answer, Api
from tests.support.server import Server


@pytest.fixture
def callers(api: Api, second_server: Server) -> tuple[Api, Api]:
    return api, api.on(second_server)


def test_one_key_on_two_endpoints_at_once_runs_one_of_them(callers: tuple[Api, Api]) -> None:
    name, key = samples.unique(), samples.unique("key")
    acts: list[Callable[[], Answer]] = [
        lambda caller=callers[number % 2], path=path: caller.post(path, {"external_id": name}, idempotency_key=key)
        for number in range(20)
        for path in ("/v1/profiles", "/v1/stores")
    ]
    answers = at_once(acts)
    statuses = Counter((answer.status, answer.is_replay) for answer in answers)
    assert statuses == {(201, False): 1, (201, True): 19, (409, False): 20}
    api = callers[0]
    created = [api.get(f"/v1/{noun}/{name}").status for noun in ("profiles", "stores")]
    assert sorted(created) == [200, 404]


def test_one_key_with_different_bodies_at_once_runs_one_of_them(callers: tuple[Api, Api]) -> None:
    key = samples.unique("key")
    bodies = [samples.profile() for _ in range(8)]
    acts: list[Callable[[], Answer]] = [
        lambda caller=callers[number % 2], body=bodies[number // 4]: caller.post(
            "/v1/profiles", body, idempotency_key=key
        )
        for number in range(32)
    ]
    answers = at_once(acts)
    statuses = Counter((answer.status, answer.is_replay) for answer in answers)
    assert statuses == {(201, False): 1, (201, True): 3, (409, False): 28}
    created = [callers[0].get(f"/v1/profiles/{body['external_id']}").status for body in bodies]
    assert Counter(created) == {200: 1, 404: 7}


def test_writes_of_every_kind_at_once_leave_what_each_alone_would_leave(callers: tuple[Api, Api]) -> None:
    """Sales, upserts, attributes and consents of the same few people, in all orders, on two processes."""
    api = callers[0]
    store: dict[str, Any] = api.post("/v1/stores", samples.store()).json()
    people = [samples.unique("customer") for _ in range(4)]
    numbers = {person: samples.phone() for person in people}
    acts: list[Callable[[], Answer]] = []
    for number in range(16):
        caller, person = callers[number % 2], people[number % 4]
        sale = samples.sale(store["id"], profile_id=person)
        profile = {"external_id": person, "attributes": {f"k{number}": "v"}}
        consent = samples.opt_in(phone_number=numbers[person], consented_at=samples.ago(minutes=60 - number))
        batch = {"items": [{"external_id": other, "attributes": {f"b{number}": "v"}} for other in reversed(people)]}
        acts += [
            lambda caller=caller, body=sale: caller.post("/v1/sales-events", body),
            lambda caller=caller, body=profile: caller.post("/v1/profiles", body),
            lambda caller=caller, body=consent: caller.post("/v1/subscriptions/opt-in", body),
            lambda caller=caller, body=batch: caller.post("/v1/profiles/batch", body),
        ]
    answers = at_once(acts)
    assert {answer.status for answer in answers} <= {200, 201}
    for answer in answers:
        assert all(result["status"] in (200, 201) for result in answer.json().get("results", []))
    for place, person in enumerate(people):
        attributes = api.get(f"/v1/profiles/{person}").json()["attributes"]
        own = {f"k{number}" for number in range(16) if number % 4 == place}
        assert set(attributes) == own | {f"b{number}" for number in range(16)}
        assert len(api.pages("/v1/sales-events", profile_id=person)) == 4
    assert len(api.pages("/v1/profiles")) == 4
