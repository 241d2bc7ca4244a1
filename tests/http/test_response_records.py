"""What is recorded of an answer, on the fast path and on the fallback path: of a success nothing of its body."""

import asyncio

import pytest
from tests.http.caller import ask, posted
from tests.http.workshop import Workshop
from tests.support.database_fixtures import request

from regulars.http.fast_requests import FastRequests
from regulars.http.json_api import JsonApi
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads
from regulars.stores.model import StoreNotFound

pytestmark = pytest.mark.anyio


@pytest.fixture
async def workshop(database, organization_id):
    async with database.transaction() as tx:
        await tx.execute("CREATE TABLE things (name text PRIMARY KEY, key text)")
    made = Workshop(database, organization_id, body=str)

    async def refuse(_tx, _write):
        return StoreNotFound("No such thing.")

    made.acts["nothing"] = refuse
    return made


class Cycle:
    """What writes the answer on the lane."""

    def __init__(self):
        self.answered = asyncio.get_running_loop().create_future()

    def reply(self, status, _headers_and_body):
        self.answered.set_result(status)


async def by_the_lane(workshop, record, body):
    lane = FastRequests(
        [workshop.route],
        cached_caller=lambda _key: request(workshop.organization_id).caller,
        rate_limiter=RateLimiter(per_s=0, burst=1),
        reads=Reads(workshop.database),
        writes=workshop.writes,
        record_response=record,
    )
    cycle = Cycle()
    head, key = lane.read_head(b"/v1/things", posted(body), keep_alive=True)
    assert lane.take(head, key, body, cycle)
    await cycle.answered


async def by_the_long_way(workshop, record, body):
    async def authenticate(_key):
        return request(workshop.organization_id).caller

    api = JsonApi(
        [workshop.route],
        reads=Reads(workshop.database),
        authenticate=authenticate,
        rate_limiter=RateLimiter(per_s=0, burst=1),
        writes=workshop.writes,
        record_response=record,
    )
    await ask(api, "POST", b"/v1/things", body)


@pytest.mark.parametrize("way", [by_the_lane, by_the_long_way])
async def test_only_the_body_of_a_refusal_is_recorded(workshop, way):
    recorded = []
    for body in (b'"a thing"', b'"nothing"'):
        await way(workshop, lambda _caller, answered: recorded.append(answered), body)
    succeeded, refused = recorded
    assert (succeeded.status, succeeded.problem) == (201, b"")
    assert refused.status == 404
    assert b"No such thing." in refused.problem
