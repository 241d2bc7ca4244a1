"""Unknown fields are ignored and named (an addition): `X-Ignored-Fields`, on successes and their replays."""

from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Answer, Api
from tests.support.server import Server

HEADER = "x-ignored-fields"


def ignored(answer: Answer) -> str | None:
    return answer.header(HEADER)


def test_every_write_names_what_it_ignored(api: Api, store: dict[str, Any]) -> None:
    profile = samples.profile(nmae="Ada", attributes={"free": "x"})
    assert ignored(api.post("/v1/profiles", profile)) == "nmae"
    address = samples.address(zip="75002")
    assert ignored(api.post("/v1/stores", samples.store(address=address, city="Paris"))) == "address.zip, city"
    wrapped = {"attributes": {"a": "b"}, "profile_id": "x"}
    assert ignored(api.post(f"/v1/profiles/{profile['external_id']}/attributes", wrapped)) == "profile_id"
    consent = samples.opt_in(consent_proof=samples.proof(url="x"), store="x")
    assert ignored(api.post("/v1/subscriptions/opt-in", consent)) == "consent_proof.url, store"
    assert ignored(api.post("/v1/subscriptions/opt-out", {"phone_number": samples.phone(), "at": 1})) == "at"
    product = {"name": "Scarf", "colour": 1, "properties": {"free": "x"}}
    lines = [samples.line(product=product, colour="red"), samples.line(colour="blue")]
    sale = samples.sale(store["id"], line_items=lines, metadata={"free": 1}, till=7)
    assert ignored(api.post("/v1/sales-events", sale)) == "line_items[].product.colour, line_items[].colour, till"


def test_nothing_is_said_where_nothing_was_ignored_and_on_refusals(api: Api, store: dict[str, Any]) -> None:
    assert ignored(api.post("/v1/sales-events", samples.sale(store["id"]))) is None
    assert ignored(api.post("/v1/sales-events", samples.sale("nowhere", unknown=1))) is None
    assert ignored(api.post("/v1/sales-events", samples.sale(store["id"], unknown=1, currency="JPY"))) is None


def test_a_name_cannot_split_the_answer(api: Api) -> None:
    answer = api.post("/v1/profiles", samples.profile(**{"a\r\nX-Evil: 1, b": 1, "é": 1}))
    assert (ignored(answer), answer.header("x-evil")) == ("a%0D%0AX-Evil:%201%2C%20b, %C3%A9", None)


def test_a_batch_names_each_path_of_its_items_once(api: Api, store: dict[str, Any]) -> None:
    sales = [samples.sale(store["id"], till=number, line_items=[samples.line(colour=1)]) for number in range(3)]
    answer = api.post("/v1/sales-events/batch", {"items": sales, "dry_run": True})
    assert [result["status"] for result in answer.json()["results"]] == [201] * 3
    assert ignored(answer) == "dry_run, items[].line_items[].colour, items[].till"
    answer = api.post("/v1/profiles/batch", {"items": [samples.profile(nmae=1), samples.profile(nmae=2)]})
    assert ignored(answer) == "items[].nmae"


@pytest.mark.parametrize("path", ["/v1/sales-events", "/v1/sales-events/batch", "/v1/profiles"])
def test_a_replay_names_them_again_in_every_process(
    api: Api, second_server: Server, store: dict[str, Any], path: str
) -> None:
    sale = samples.sale(store["external_id"], till=7)
    body = {"/v1/profiles": samples.profile(till=7), "/v1/sales-events": sale}.get(path, {"items": [sale]})
    key = samples.unique("key")
    first = api.post(path, body, idempotency_key=key)
    replays = [caller.post(path, body, idempotency_key=key) for caller in (api, api.on(second_server))]
    assert ignored(first) == ("items[].till" if path.endswith("batch") else "till")
    assert [(replay.is_replay, ignored(replay)) for replay in replays] == [(True, ignored(first))] * 2
