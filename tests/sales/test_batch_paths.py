"""A batch request gives the same answer and leaves the same rows with the quick path inside it and without."""

import asyncio
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.sales.counter import Counter, comparable_body
from tests.sales.desk import write_profile
from tests.sales.traffic import Traffic
from tests.support import samples
from tests.support.database_fixtures import request

from regulars.http.request import ApiResponse
from regulars.http.route import BATCH_REQUEST_ITEMS_MAX, BATCH_REQUESTS_PER_STATEMENT_MAX, WriteRoute
from regulars.kit.ids import NEW_UUIDS_MAX
from regulars.sales import api

pytestmark = pytest.mark.anyio


async def send_batch(counter: Counter, bodies: list[dict[str, Any]], *, key: str | None = None) -> Any:
    [answer] = await send_batches(counter, [bodies], keys=[key])
    return answer


async def send_batches(
    counter: Counter,
    batches: list[list[dict[str, Any]]],
    *,
    keys: Sequence[str | None] = (),
    at_once: bool = True,
    in_order: bool = True,
) -> list[Any]:
    """Send the requests: at once, so that they meet, or each when the one before is answered.

    In order means through one queue, so that they are decided in the order they were sent.
    """
    names = await counter.canonical_ids()
    route = counter.routes[api.RECORD_SALES]
    if in_order:
        route = dataclasses.replace(route, parallel_batches=1)
    sent = [_submit(counter, route, bodies, names, key) for bodies, key in itertools.zip_longest(batches, keys)]
    answers = await asyncio.gather(*sent) if at_once else [await one for one in sent]
    back = {identifier: f"@{name}" for name, identifier in (await counter.canonical_ids()).items()}
    return [comparable_body(msgspec.json.decode(answer.body), back) for answer in answers]


async def _submit(
    counter: Counter, route: WriteRoute, bodies: list[dict[str, Any]], names: dict[str, str], key: str | None
) -> ApiResponse:
    items = [
        {
            name: names.get(value[1:], value) if isinstance(value, str) and value.startswith("@") else value
            for name, value in body.items()
        }
        for body in bodies
    ]
    asked = request(counter.desk.organization_id, body=samples.json_bytes({"items": items}))
    return await counter.writes.submit(route, asked, target=b"/v1/sales-events/batch", key=key, charge=lambda _: None)


def ticket(name: str, **changes: Any) -> dict[str, Any]:
    return {**samples.sale("PARIS-01"), "external_id": name, **changes}


def statuses(answer: Any) -> list[int]:
    return [result["status"] for result in answer["results"]]


@pytest.mark.parametrize("seed", [11, 12, 13])
async def test_random_batches_have_the_same_answers_and_leave_the_same_rows(quick, plain, seed):
    traffic = Traffic(seed)
    quickly = 0
    for _ in range(12):
        bodies = [sale.body for sale in traffic.batch()]
        answers = [await send_batch(counter, bodies) for counter in (quick, plain)]
        assert answers[0] == answers[1], f"seed {seed}"
        quickly += sum(result["status"] == 201 for result in answers[0]["results"])
    assert await quick.left() == await plain.left(), f"seed {seed}"
    assert quickly > 20


@pytest.mark.parametrize("seed", [21, 22, 23])
async def test_requests_that_meet_are_decided_as_if_each_had_come_alone(quick, plain, seed):
    traffic = Traffic(seed)
    for number in range(6):
        batches = [[sale.body for sale in traffic.batch()] for _ in range(4)]
        batches.append([ticket(f"new {number}-{place}", profile_id=f"new {place}") for place in range(3)])
        together = await send_batches(quick, batches)
        alone = await send_batches(plain, batches, at_once=False)
        assert together == alone, f"seed {seed}"
    assert await quick.left() == await plain.left(), f"seed {seed}"


async def test_four_requests_are_one_statement_each_with_its_answer_and_its_key(quick):
    batches = [[ticket(f"{name}{n}", profile_id=f"customer {n}") for n in range(3)] for name in "ABCDE"]
    keys = ["k1", None, "k3", None, "k5"]
    answers = await send_batches(quick, batches, keys=keys)
    assert quick.sent_quickly == [4, 1]
    for answer, bodies in zip(answers, batches, strict=True):
        assert statuses(answer) == [201] * 3
        answered = [result["body"]["sales_event"]["external_id"] for result in answer["results"]]
        assert answered == [body["external_id"] for body in bodies]
    assert [len(fact) for fact in await quick.desk.published_sales()] == [12, 3]
    assert await quick.desk.customers() == ["customer 0", "customer 1", "customer 2"]
    assert await send_batches(quick, batches, keys=keys) == [
        answer if key is not None else {"results": [{**result, "status": 200, "body": {
            **result["body"], "automation": {"state": "not_applicable"}}} for result in answer["results"]]}
        for answer, key in zip(answers, keys, strict=True)
    ]  # fmt: skip


async def test_of_requests_that_meet_only_those_that_are_not_plain_take_the_careful_path(quick):
    answers = await send_batches(
        quick,
        [
            [ticket("A1"), ticket("A2")],
            [ticket("B1"), ticket("B2", store_id="nowhere")],
            [ticket("A2", profile_id="other"), ticket("C1")],
            [ticket("D1", type="GIFT")],
        ],
    )
    assert quick.sent_quickly == [1]
    assert [statuses(answer) for answer in answers] == [[201, 201], [201, 404], [200, 201], [400]]
    assert await quick.desk.tickets() == ["A1", "A2", "B1", "C1"]


async def test_a_ticket_that_is_stored_already_sends_only_its_own_request_to_the_careful_path(quick):
    await send_batch(quick, [ticket("A1")])
    answers = await send_batches(quick, [[ticket("B1")], [ticket("A1"), ticket("A2")], [ticket("C1")]])
    # The statement for all three was refused, and so was the second by itself.
    assert quick.sent_quickly == [1, 1, 1]
    assert [statuses(answer) for answer in answers] == [[201], [200, 201], [201]]
    # Those that follow soon after go alone from the start.
    await send_batches(quick, [[ticket("D1")], [ticket("E1")]])
    assert quick.sent_quickly == [1, 1, 1, 1, 1]


async def test_a_request_that_the_statement_refused_is_not_overtaken_by_a_later_one(quick):
    await send_batch(quick, [ticket("A1")])
    answers = await send_batches(
        quick, [[ticket("A1"), ticket("B1", profile_id="first")], [ticket("B1", profile_id="second"), ticket("C1")]]
    )
    assert [statuses(answer) for answer in answers] == [[200, 201], [200, 201]]
    assert await quick.desk.customers() == ["first"]


async def test_requests_in_flight_together_that_share_new_customers_are_all_recorded_once(quick):
    batches = [[ticket(f"{name}{n}", profile_id=f"customer {n}") for n in range(3)] for name in "ABCDEFGHIJKL"]
    keys = [f"k{number}" if number % 2 else None for number in range(len(batches))]
    answers = await send_batches(quick, batches, keys=keys, in_order=False)
    assert [statuses(answer) for answer in answers] == [[201] * 3] * len(batches)
    assert await quick.desk.tickets() == sorted(body["external_id"] for bodies in batches for body in bodies)
    assert await quick.desk.customers() == ["customer 0", "customer 1", "customer 2"]
    assert sum(len(fact) for fact in await quick.desk.published_sales()) == 36
    again = await send_batches(quick, batches, keys=keys, in_order=False)
    assert [statuses(answer) for answer in again] == [[201] * 3 if key else [200] * 3 for key in keys]


def test_the_ids_of_the_largest_statement_can_be_made_at_once():
    # Each sale has one, and its customer.
    assert 2 * BATCH_REQUESTS_PER_STATEMENT_MAX * BATCH_REQUEST_ITEMS_MAX <= NEW_UUIDS_MAX


async def test_a_customer_that_another_process_writes_meanwhile_is_found_by_the_careful_path(quick, monkeypatch):
    body = {**samples.sale("PARIS-01"), "external_id": "A", "profile_id": "ada"}
    original = quick.recorder._prepare

    async def be_overtaken(*arguments: Any, **options: Any) -> Any:
        prepared = await original(*arguments, **options)
        async with await quick.desk.elsewhere() as other:
            await write_profile(other, quick.desk.organization_id, "ada")
        return prepared

    monkeypatch.setattr(quick.recorder, "_prepare", be_overtaken)
    answer = await send_batch(quick, [body])
    assert [result["status"] for result in answer["results"]] == [201]
    assert await quick.desk.customers() == ["ada"]
