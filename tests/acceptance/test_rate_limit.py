"""The rate limit: a token bucket per key, told in headers."""

from collections.abc import Callable

from tests.support import samples
from tests.support.api import StartServer
from tests.support.client import Answer, Api, get_url
from tests.support.tenant import Tenant, another_key


def test_a_key_that_used_up_its_requests_learns_when_to_retry(
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
    assert _until_refused(lambda: caller.post("/v1/profiles", content=b"{")).code == "RATE_LIMITED"
    assert other_api.on(slow).get("/v1/stores").status == 200
    second_key = caller.as_tenant(another_key(api_database_url, tenant))
    assert second_key.get("/v1/stores").status == 200


def test_a_batch_item_costs_one_token_and_a_refused_batch_has_done_nothing(api: Api, start_server: StartServer) -> None:
    caller = api.on(start_server(rate_limit_per_s="1", rate_limit_burst="50"))
    sent: list[str] = []

    def send_40() -> Answer:
        items = [samples.profile() for _ in range(40)]
        sent.append(items[0]["external_id"])
        return caller.post("/v1/profiles/batch", {"items": items})

    assert send_40().status == 200
    assert _until_refused(send_40).code == "RATE_LIMITED"
    assert api.get(f"/v1/profiles/{sent[-1]}").status == 404


def test_a_request_that_changes_its_way_through_the_server_costs_one_token(api: Api, start_server: StartServer) -> None:
    """What cannot be read is declined by the short way, which has counted it by then, and counted by the long one."""
    caller = api.on(start_server(rate_limit_per_s="1", rate_limit_burst="1000"))
    assert caller.post("/v1/profiles", samples.profile()).status == 201
    answers = [caller.post("/v1/profiles", content=b"{") for _ in range(6)]
    remaining = [int(answer.header("ratelimit-remaining") or -1) for answer in answers]
    assert {answer.status for answer in answers} == {400}
    assert remaining[0] - remaining[-1] <= 5, remaining


def test_a_refusal_for_the_rate_is_the_same_on_every_way_through_the_server(
    api: Api, start_server: StartServer
) -> None:
    for lane in ("on", "off"):
        caller = api.on(start_server(rate_limit_per_s="1", rate_limit_burst="3", fast_lane=lane))
        refused = _until_refused(lambda caller=caller: caller.post("/v1/profiles", samples.profile()))  # type: ignore[misc]  # bound now
        assert refused.code == "RATE_LIMITED"
        assert int(refused.header("retry-after") or 0) >= 1
        assert refused.header("ratelimit-limit") == "3"
        assert refused.header("content-type") == "application/problem+json"


def _until_refused(call: Callable[[], Answer]) -> Answer:
    """A machine that stalls for a second fills the bucket again, so try a few times."""
    for _ in range(20):
        answer = call()
        if answer.status == 429:
            return answer
    raise AssertionError("never refused")


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
    response = get_url(f"{api.server.url}/v1/stores", headers={"x-api-key": api.tenant.key})
    names = [name.lower() for name, _ in response.headers.raw]
    assert len(names) == len(set(names))
