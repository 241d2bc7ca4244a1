"""A batch request gives the same answer and leaves the same rows with the quick path inside it and without."""

from typing import Any

import msgspec
import pytest
from tests.sales.counter import Counter, comparable_body
from tests.sales.traffic import Traffic
from tests.support import samples
from tests.support.room import request

from regulars.kit.ids import new_uuid
from regulars.sales import api

pytestmark = pytest.mark.anyio


async def send_batch(counter: Counter, bodies: list[dict[str, Any]], *, key: str | None = None) -> Any:
    names = await counter.canonical_ids()
    items = [
        {
            name: names.get(value[1:], value) if isinstance(value, str) and value.startswith("@") else value
            for name, value in body.items()
        }
        for body in bodies
    ]
    asked = request(counter.desk.organization_id, body=samples.json_bytes({"items": items}))
    route = counter.routes[api.RECORD_SALES]
    answer = await counter.writes.submit(route, asked, target=b"/v1/sales-events/batch", key=key, charge=lambda _: None)
    back = {identifier: f"@{name}" for name, identifier in (await counter.canonical_ids()).items()}
    return comparable_body(msgspec.json.decode(answer.body), back)


@pytest.mark.parametrize("seed", [11, 12, 13])
async def test_random_batches_have_the_same_answers_and_leave_the_same_rows(quick, plain, seed):
    traffic = Traffic(seed)
    quickly = 0
    for _ in range(12):
        bodies = [told.body for told in traffic.batch()]
        answers = [await send_batch(counter, bodies) for counter in (quick, plain)]
        assert answers[0] == answers[1], f"seed {seed}"
        quickly += sum(result["status"] == 201 for result in answers[0]["results"])
    assert await quick.left() == await plain.left(), f"seed {seed}"
    assert quickly > 20


async def test_a_customer_that_another_process_writes_meanwhile_is_found_by_the_careful_path(quick, monkeypatch):
    body = {**samples.sale("PARIS-01"), "external_id": "A", "profile_id": "ada"}
    original = quick.recorder._prepare

    async def be_overtaken(*arguments: Any, **options: Any) -> Any:
        prepared = await original(*arguments, **options)
        async with await quick.desk.elsewhere() as other:
            await other.execute(
                "INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)"
                " VALUES (%s, %s, 'ada', now(), now())",
                (quick.desk.organization_id, new_uuid()),
            )
        return prepared

    monkeypatch.setattr(quick.recorder, "_prepare", be_overtaken)
    answer = await send_batch(quick, [body])
    assert [result["status"] for result in answer["results"]] == [201]
    assert await quick.desk.customers() == ["ada"]
