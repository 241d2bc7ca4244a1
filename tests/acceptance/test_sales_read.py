"""`GET /v1/sales-events/{sales_event_id}` (an addition): the bare object."""

from typing import Any

from tests.support import samples
from tests.support.client import Api, segment


def test_it_knows_no_sale_that_was_never_sent(api: Api) -> None:
    for reference in ("none", "evt_01h455vb4pex5vsknk084sn02q", "prof_x"):
        assert api.get(f"/v1/sales-events/{reference}").refused == (404, "SALES_EVENT_NOT_FOUND")


def test_it_reads_a_sale_by_either_reference(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"], external_id=f"{store['external_id']}:{samples.unique()}")
    event = api.post("/v1/sales-events", body).json()["sales_event"]
    for reference in (event["id"], event["external_id"]):
        answer = api.get(f"/v1/sales-events/{segment(reference)}")
        assert (answer.status, answer.json()) == (200, event)
