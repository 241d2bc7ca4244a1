"""One time for the whole request: what it took to find out who calls is gone when the rest begins."""

import asyncio
from math import inf

import pytest
from tests.http.caller import ask
from tests.http.workshop import Workshop
from tests.support.database_fixtures import request

from regulars.http import json_api
from regulars.http.json_api import JsonApi
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads
from regulars.http.request import ApiResponse
from regulars.http.route import LookUpRoute, ReadRoute
from regulars.kit.clock import monotonic

pytestmark = pytest.mark.anyio

# Much less than a request has, and much more than what is left of it takes.
SOON_S = 6.0


async def wait_for_ever(*_asked):
    await asyncio.sleep(inf)
    return ApiResponse(200, b"")


class Slow:
    """An API whose keys are told only when the time of their requests is all but over."""

    def __init__(self, database, organization_id, monkeypatch):
        self.workshop = Workshop(database, organization_id, body=str)
        self.workshop.gate.clear()
        self._late_by = 0.0
        monkeypatch.setattr(json_api, "monotonic", lambda: monotonic() + self._late_by)
        about = {"tag": "", "summary": "", "responses": {}}
        self._api = JsonApi(
            [
                self.workshop.route,
                ReadRoute(path="/v1/things", operation_id="listThings", parameters=(), handle=self._list, **about),
                LookUpRoute(path="/v1/things/{thing_id}", operation_id="getThing", find=wait_for_ever, **about),
            ],
            reads=Reads(database),
            authenticate=self._authenticate,
            rate_limiter=RateLimiter(per_s=0, burst=1),
            writes=self.workshop.writes,
        )

    async def _authenticate(self, _key):
        self._late_by += json_api.REQUEST_S - 0.2
        return request(self.workshop.organization_id).caller

    async def _list(self, tx, _request):
        return ApiResponse(200, str(await tx.fetch("SELECT pg_sleep(600)")).encode())

    async def ask(self, method, path, body=b""):
        async with asyncio.timeout(SOON_S):
            return await ask(self._api, method, path, body)


@pytest.mark.parametrize("asked", [("GET", b"/v1/things"), ("GET", b"/v1/things/one"), ("POST", b"/v1/things", b'"a"')])
async def test_what_is_asked_late_is_refused_when_its_time_is_over(database, organization_id, monkeypatch, asked):
    slow = Slow(database, organization_id, monkeypatch)
    status, _ = await slow.ask(*asked)
    slow.workshop.gate.set()
    assert status == 503
