"""The rate limit: a token bucket per key, told in headers."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.support import raw, samples
from tests.support.api import StartServer
from tests.support.client import Answer, Api
from tests.support.server import Server, running_server
from tests.support.tenant import Tenant, another_key

RATE_HEADERS = {"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"}


@pytest.fixture(scope="module", params=[True, False], ids=["on the lane", "off the lane"])
def limited(request: pytest.FixtureRequest, api_database_url: str) -> Iterator[Server]:
    """A server on which a key may send 50 requests, and one more each second."""
    limits = {"rate_limit_per_s": "1", "rate_limit_burst": "50"}
    with running_server(api_database_url, options={"has_fast_protocol": request.param}, **limits) as running:
        yield running


def test_a_key_that_used_up_its_requests_learns_when_to_retry(
    api: Api, other_api: Api, tenant: Tenant, limited: Server, api_database_url: str
) -> None:
    caller = api.on(limited)
    answers = [caller.get("/v1/stores") for _ in range(5)]
    assert [answer.status for answer in answers] == [200] * 5
    remaining = [int(answer.header("ratelimit-remaining") or -1) for answer in answers]
    assert remaining == sorted(remaining, reverse=True)
    assert all(answer.header("ratelimit-limit") and answer.header("ratelimit-reset") for answer in answers)
    # The rate comes after the key and before the body.
    for content in (samples.json_bytes(samples.profile()), b"{"):
        refused = _until_refused(lambda: caller.post("/v1/profiles", content=content))  # noqa: B023  # at once
        assert refused.code == "RATE_LIMITED"
        assert int(refused.header("retry-after") or 0) >= 1
        assert (refused.header("ratelimit-limit"), refused.header("ratelimit-remaining")) == ("50", "0")
        assert refused.header("content-type") == "application/problem+json"
    # Another key has a bucket of its own.
    assert other_api.on(limited).get("/v1/stores").status == 200
    assert caller.as_tenant(another_key(api_database_url, tenant)).get("/v1/stores").status == 200


def test_a_batch_item_costs_one_token_and_a_refused_batch_has_done_nothing(api: Api, limited: Server) -> None:
    caller = api.on(limited)
    sent: list[str] = []

    def send_40() -> Answer:
        items = [samples.profile() for _ in range(40)]
        sent.append(items[0]["external_id"])
        return caller.post("/v1/profiles/batch", {"items": items})

    assert send_40().status == 200
    assert _until_refused(send_40).code == "RATE_LIMITED"
    assert api.get(f"/v1/profiles/{sent[-1]}").status == 404


def test_a_request_that_changes_its_way_through_the_server_costs_one_token(api: Api, limited: Server) -> None:
    """What cannot be read is declined by the short way, which has counted it by then, and counted by the long one."""
    caller = api.on(limited)
    assert caller.post("/v1/profiles", samples.profile()).status == 201
    answers = [caller.post("/v1/profiles", content=b"{") for _ in range(6)]
    remaining = [int(answer.header("ratelimit-remaining") or -1) for answer in answers]
    assert {answer.status for answer in answers} == {400}
    assert remaining[0] - remaining[-1] <= 5, remaining


def _until_refused(call: Callable[[], Answer]) -> Answer:
    """A machine that stalls for a second fills the bucket again."""
    for _ in range(200):
        answer = call()
        if answer.status == 429:
            return answer
    raise AssertionError("never refused")


def test_with_the_limit_off_there_are_no_headers_of_it(api: Api, start_server: StartServer) -> None:
    unlimited = api.on(start_server(rate_limit_per_s="0"))
    # The first call of a key is looked up on the long way; those after it take the lane.
    for call in (lambda: unlimited.get("/v1/stores"), lambda: unlimited.post("/v1/profiles", samples.profile())) * 2:
        answer = call()
        assert answer.status in {200, 201}
        assert not [name for name in answer.headers if name.startswith("ratelimit")]


def test_the_headers_are_on_every_answer_to_a_known_key(api: Api) -> None:
    for answer in (api.get("/v1/stores"), api.get("/v1/stores/nowhere"), api.post("/v1/stores", content=b"{")):
        assert {name for name in answer.headers if name.startswith("ratelimit")} == RATE_HEADERS


def test_each_header_is_sent_once_also_with_the_refusal_of_a_batch(api: Api, limited: Server) -> None:
    """The batch costs more than the bucket ever holds, which would have to be full."""
    for size, status in ((1, 200), (60, 429)):
        body = samples.json_bytes({"items": [{"external_id": "x"}] * size})
        headers = [*api.key_header(), (b"content-type", b"application/json")]
        answer = raw.send(limited.address, "POST", "/v1/profiles/batch", headers=headers, body=body)
        assert answer.status == status
        counts = Counter(name.lower() for name in answer.headers)
        assert set(counts.values()) == {1}
        assert counts.keys() >= RATE_HEADERS
        assert ("retry-after" in counts) == (status == 429)
