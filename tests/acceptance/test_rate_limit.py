"""The rate limit: a token bucket per key, told in headers."""

import httpx
from tests.support import samples
from tests.support.api import StartServer
from tests.support.client import Api
from tests.support.tenant import Tenant, another_key


def test_a_key_that_used_up_its_requests_is_told_when_to_come_back(
    api: Api, other_api: Api, tenant: Tenant, start_server: StartServer, api_database_url: str
) -> None:
    slow = start_server(rate_limit_per_s="1", rate_limit_burst="5")
    caller = api.on(slow)
    answers = [caller.get("/v1/stores") for _ in range(8)]
    statuses = [answer.status for answer in answers]
    assert statuses[:5] == [200] * 5
    assert 429 in statuses[5:]
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.code == "RATE_LIMITED"
    assert int(refused.header("retry-after") or 0) >= 1
    assert refused.header("ratelimit-remaining") == "0"
    remaining = [int(answer.header("ratelimit-remaining") or -1) for answer in answers[:5]]
    assert remaining == sorted(remaining, reverse=True)
    assert all(answer.header("ratelimit-limit") and answer.header("ratelimit-reset") for answer in answers)
    # The rate comes after the key and before the body; another key has a bucket of its own.
    assert caller.post("/v1/profiles", content=b"{").status == 429
    assert other_api.on(slow).get("/v1/stores").status == 200
    second_key = caller.as_tenant(another_key(api_database_url, tenant))
    assert second_key.get("/v1/stores").status == 200
    # A batch item costs one token, and a refused batch has done nothing.
    items = [samples.profile() for _ in range(5)]
    batch = second_key.post("/v1/profiles/batch", {"items": items})
    assert batch.refused == (429, "RATE_LIMITED")
    assert api.get(f"/v1/profiles/{items[0]['external_id']}").status == 404


def test_with_the_limit_off_there_are_no_headers_of_it(api: Api, start_server: StartServer) -> None:
    answer = api.on(start_server(rate_limit_per_s="0")).get("/v1/stores")
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("ratelimit")]


def test_the_headers_are_on_every_answer_to_a_known_key(api: Api) -> None:
    for answer in (api.get("/v1/stores"), api.get("/v1/stores/nowhere"), api.post("/v1/stores", content=b"{")):
        names = [name for name in answer.headers if name.startswith("ratelimit")]
        assert sorted(names) == ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]


def test_each_header_is_sent_once(api: Api) -> None:
    assert api.tenant is not None
    response = httpx.get(f"{api.server.url}/v1/stores", headers={"x-api-key": api.tenant.key}, trust_env=False)
    names = [name.lower() for name, _ in response.headers.raw]
    assert len(names) == len(set(names))
