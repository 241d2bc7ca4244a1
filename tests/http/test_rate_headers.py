"""A refusal for the rate, as it goes over the wire."""

from collections import Counter

from tests.support import raw, samples
from tests.support.server import running_server
from tests.support.tenant import new_tenant


def test_every_answer_has_each_header_of_the_rate_once_also_the_refusal_of_a_batch(database_url):
    with running_server(database_url, rate_limit_per_s="2", rate_limit_burst="20") as server:
        headers = [(b"x-api-key", new_tenant(database_url).key.encode()), (b"content-type", b"application/json")]

        def send(size: int) -> raw.Answer:
            body = samples.json_bytes({"items": [{"external_id": "x"}] * size})
            return raw.send(server.address, "POST", "/v1/profiles/batch", headers=headers, body=body)

        # Fifty are more than the bucket ever holds; it would have to be full.
        responses = [send(10), send(15), send(1), send(50)]
        singles = [send(1) for _ in range(40)]
    assert [answer.status for answer in responses] == [200, 429, 200, 429]
    assert singles[-1].status == 429
    for answer in [*responses, *singles]:
        names = Counter(name.lower() for name in answer.headers)
        assert {name: count for name, count in names.items() if name.startswith("ratelimit-")} == {
            "ratelimit-limit": 1,
            "ratelimit-remaining": 1,
            "ratelimit-reset": 1,
        }
        assert ("retry-after" in names) == (answer.status == 429)
