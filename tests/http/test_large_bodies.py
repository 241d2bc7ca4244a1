"""A crowd of the largest bodies leaves the memory of the server process as it was, or nearly so."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import samples
from tests.support.raw import send
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant
from tests.support.waiting import wait_until

BODIES = 32
LINES_PER_TICKET = 112
MEMORY_MB_MAX = 150
# The first look comes sooner than it does otherwise, the last at the same time.
TRIMMED_SOONER = {"regulars.http.large_bodies.TRIM_AFTER_S": (2.0, 8.0, 40.0)}


@pytest.mark.timeout(240)
def test_the_memory_that_large_batches_took_is_given_back(api_database_url: str) -> None:
    with running_server(api_database_url, constants=TRIMMED_SOONER, rate_limit_per_s="0") as server:
        key = [(b"x-api-key", new_tenant(api_database_url).key.encode()), (b"content-type", b"application/json")]
        store = samples.json_bytes(samples.store(external_id="S1"))
        assert send(server.address, "POST", "/v1/stores", headers=key, body=store).status == 201
        before_mb = memory_mb(server)
        body = _largest_batch()

        def record(number: int) -> int:
            mine = body.replace(b"TICKET", b"%06d" % number)
            return send(server.address, "POST", "/v1/sales-events/batch", headers=key, body=mine).status

        with ThreadPoolExecutor(BODIES) as callers:
            statuses = set(callers.map(record, range(BODIES)))
        assert statuses <= {200, 408, 503}
        wait_until(
            lambda: memory_mb(server) <= MEMORY_MB_MAX,
            show=lambda: f"{before_mb} MB before, {memory_mb(server)} MB after",
        )


def _largest_batch() -> bytes:
    line = samples.line()
    line["product"] = samples.without(line["product"], "properties")
    lines = [line] * LINES_PER_TICKET
    items = [samples.sale("S1", external_id=f"TICKET-{number}", line_items=lines) for number in range(500)]
    body = samples.json_bytes({"items": items})
    assert 7 << 20 < len(body) < 8 << 20
    return body


def memory_mb(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
    [resident] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(resident.split()[1]) >> 10
