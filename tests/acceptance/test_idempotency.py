"""The `Idempotency-Key` header (specification 4.12): one execution, and the same bytes again."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from tests.support import samples
from tests.support.api import StartServer
from tests.support.client import Answer, Api, segment
from tests.support.server import Server
from tests.support.tenant import Tenant


def assert_replays(first: Answer, again: Answer) -> None:
    assert again.is_replay
    assert not first.is_replay
    assert (again.status, again.body) == (first.status, first.body)
    assert again.header("content-type") == first.header("content-type")


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def writes(api: Api) -> dict[str, tuple[str, Any]]:
    """One valid call for each write endpoint with a body."""
    store = api.post("/v1/stores", samples.store()).json()
    profile = api.post("/v1/profiles", samples.profile()).json()
    return {
        "store": ("/v1/stores", samples.store()),
        "profile": ("/v1/profiles", samples.profile()),
        "profiles": ("/v1/profiles/batch", {"items": [samples.profile()]}),
        "attributes": (f"/v1/profiles/{profile['id']}/attributes", {"attributes": {"a": "b"}}),
        "sale": ("/v1/sales-events", samples.sale(store["id"], profile_id=samples.unique())),
        "sales": ("/v1/sales-events/batch", {"items": [samples.sale(store["id"])]}),
        "opt-in": ("/v1/subscriptions/opt-in", samples.opt_in()),
        "opt-out": ("/v1/subscriptions/opt-out", {"phone_number": samples.phone()}),
    }


@pytest.mark.parametrize("name", ["store", "profile", "profiles", "attributes", "sale", "sales", "opt-in", "opt-out"])
def test_every_write_replays_its_first_answer_byte_for_byte_in_every_process(
    api: Api, second_server: Server, key: str, name: str
) -> None:
    path, body = writes(api)[name]
    first = api.post(path, body, idempotency_key=key)
    assert first.status in (200, 201)
    assert_replays(first, api.post(path, body, idempotency_key=key))
    assert_replays(first, api.on(second_server).post(path, body, idempotency_key=key))


def test_a_replay_does_not_run_the_action_again(api: Api, key: str) -> None:
    body = samples.profile(first_name="Ada")
    first = api.post("/v1/profiles", body, idempotency_key=key)
    api.post("/v1/profiles", {**body, "first_name": "Grace"})
    assert_replays(first, api.post("/v1/profiles", body, idempotency_key=key))
    assert api.get(f"/v1/profiles/{body['external_id']}").json()["first_name"] == "Grace"


def test_an_answer_outlives_a_restart_and_a_power_cut(api: Api, start_server: StartServer, key: str) -> None:
    server = start_server()
    caller, body = api.on(server), samples.profile()
    first = caller.post("/v1/profiles", body, idempotency_key=key)
    server.restart()
    assert_replays(first, caller.post("/v1/profiles", body, idempotency_key=key))
    server.kill()
    server.start()
    assert_replays(first, caller.post("/v1/profiles", body, idempotency_key=key))


def test_a_key_whose_first_request_does_not_finish_is_refused_in_the_end_and_then_free(
    api: Api, tenant: Tenant, api_database_url: str, start_server: StartServer
) -> None:
    # Shorter than the eight seconds, which a test of the write engine counts.
    shorter = {"regulars.http.in_flight.WAIT_FOR_SAME_KEY_S": 2.0}
    caller = api.on(start_server(constants=shorter, lock_timeout_ms="1000"))
    calls = {name: writes(caller)[name] for name in ("store", "sale", "sales")}
    keys = {name: str(uuid.uuid4()) for name in calls}

    def send(name: str) -> Answer:
        path, body = calls[name]
        return caller.post(path, body, idempotency_key=keys[name])

    with psycopg.connect(api_database_url) as elsewhere, ThreadPoolExecutor(len(calls)) as pool:
        for key in keys.values():
            elsewhere.execute(
                "INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)"
                " VALUES (%s, %s, '', 201, '', now())",
                (tenant.organization_id, key),
            )
        refused = dict(zip(calls, pool.map(send, calls), strict=True))
        elsewhere.rollback()
    for name, answer in refused.items():
        assert answer.refused == (409, "IDEMPOTENCY_IN_PROGRESS")
        again = send(name)
        assert (again.status, again.is_replay) == (200 if name == "sales" else 201, False)


def test_an_erasure_replays_too(api: Api, key: str) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    path = f"/v1/profiles/{segment(profile['external_id'])}"
    first = api.delete(path, headers={"Idempotency-Key": key})
    again = api.delete(path, headers={"Idempotency-Key": key})
    assert (first.status, again.status, again.is_replay) == (204, 204, True)


def test_the_same_key_with_another_body_path_or_query_is_a_conflict_which_is_not_stored(api: Api, key: str) -> None:
    body = {"external_id": samples.unique()}
    content = samples.json_bytes(body)
    first = api.post("/v1/profiles", content=content, idempotency_key=key)
    for path, changed in (
        ("/v1/profiles", samples.json_bytes({**body, "first_name": "Grace"})),
        ("/v1/profiles", content + b" "),
        ("/v1/stores", content),
        ("/v1/profiles?x=1", content),
    ):
        assert api.post(path, content=changed, idempotency_key=key).refused == (409, "IDEMPOTENCY_CONFLICT")
    assert api.get(f"/v1/profiles/{body['external_id']}").json()["first_name"] is None
    assert api.get(f"/v1/stores/{body['external_id']}").status == 404
    assert_replays(first, api.post("/v1/profiles", content=content, idempotency_key=key))


def test_the_key_is_ignored_on_reads(api: Api, key: str) -> None:
    for _ in range(2):
        assert not api.get("/v1/stores", headers={"Idempotency-Key": key}).is_replay
    assert api.raw("GET", "/v1/stores", headers=[(b"Idempotency-Key", b"")]).status == 200


@pytest.mark.parametrize("content", [b'{"external_id":', b"{}", b'{"external_id":"prof_x"}'])
def test_a_decided_400_is_stored_and_says_so(api: Api, key: str, content: bytes) -> None:
    first = api.post("/v1/profiles", content=content, idempotency_key=key)
    assert first.status == 400
    assert "new one" in first.json()["detail"]
    again = api.post("/v1/profiles", content=content, idempotency_key=key)
    assert_replays(first, again)
    assert again.json()["request_id"] == first.header("x-request-id")
    assert again.header("x-request-id") != first.header("x-request-id")


def test_a_decided_404_is_stored_although_the_store_exists_by_now(api: Api, key: str) -> None:
    store = samples.store()
    sale = samples.sale(store["external_id"])
    first = api.post("/v1/sales-events", sale, idempotency_key=key)
    assert first.refused == (404, "STORE_NOT_FOUND")
    api.post("/v1/stores", store)
    assert_replays(first, api.post("/v1/sales-events", sale, idempotency_key=key))
    assert api.post("/v1/sales-events", sale, idempotency_key=str(uuid.uuid4())).status == 201


def test_without_a_key_a_refusal_says_nothing_of_keys(api: Api) -> None:
    assert "Idempotency-Key" not in api.post("/v1/profiles", {}).json()["detail"]


def test_what_was_refused_before_the_operation_is_not_stored(api: Api, anonymous: Api, key: str) -> None:
    body = samples.profile()
    assert anonymous.post("/v1/profiles", body, idempotency_key=key).status == 401
    wrong_type = {"Content-Type": "text/plain"}
    assert api.post("/v1/profiles", body, idempotency_key=key, headers=wrong_type).status == 415
    large = samples.json_bytes({**body, "note": "x" * (1 << 20)})
    assert api.post("/v1/profiles", content=large, idempotency_key=key).status == 413
    assert api.call("PUT", "/v1/profiles", headers={"Idempotency-Key": key}).status == 405
    fresh = api.post("/v1/profiles", body, idempotency_key=key)
    assert (fresh.status, fresh.is_replay) == (201, False)


def test_the_longest_key_and_every_visible_character_work(api: Api) -> None:
    visible = "".join(map(chr, range(0x21, 0x7F)))
    for key in (visible, "k" * 255):
        body = samples.profile()
        first = api.post("/v1/profiles", body, idempotency_key=key)
        assert_replays(first, api.post("/v1/profiles", body, idempotency_key=key))
