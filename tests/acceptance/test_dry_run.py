"""`dry_run=true` (an addition): the response that a write would get, and nothing done."""

from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.support import samples
from tests.support.client import Api
from tests.support.tenant import Tenant

NIL = "0" * 26
VOLATILE = ("created_at", "updated_at", "id", "request_id", "unsubscribed_at")


def count_rows(url: str, tenant: Tenant) -> list[tuple[str, int]]:
    """How much every table of organizations holds of this one."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND column_name = 'organization_id' AND table_name NOT LIKE 'request%%'"
        ).fetchall()
        count = sql.SQL("SELECT {}, count(*) FROM {} WHERE organization_id = {}")
        counts = [count.format(name, sql.Identifier(name), tenant.organization_id) for (name,) in tables]
        return sorted(connection.execute(sql.SQL(" UNION ALL ").join(counts)).fetchall())


def alike(value: Any) -> Any:
    """Without what differs between two runs of the same."""
    if isinstance(value, dict):
        return {name: alike(member) for name, member in value.items() if name not in VOLATILE}
    return [alike(member) for member in value] if isinstance(value, list) else value


@pytest.fixture
def writes(api: Api, store: dict[str, Any]) -> list[tuple[str, Any]]:
    known = api.post("/v1/profiles", samples.profile()).json()
    return [
        ("/v1/profiles", samples.profile(attributes={"brand_new_key": "1"})),
        ("/v1/profiles", {"external_id": known["external_id"], "first_name": "Other"}),
        ("/v1/profiles/batch", {"items": [samples.profile(), samples.profile(external_id="prof_x")]}),
        (f"/v1/profiles/{known['id']}/attributes", {"attributes": {"size": "XL"}}),
        ("/v1/stores", samples.store()),
        ("/v1/subscriptions/opt-in", samples.opt_in(profile_id=known["id"])),
        ("/v1/subscriptions/opt-out", {"phone_number": samples.phone()}),
        ("/v1/sales-events", samples.sale(store["id"], profile_id=samples.unique())),
        ("/v1/sales-events/batch", {"items": [samples.sale(store["id"]), samples.sale("nowhere")]}),
    ]


def test_it_answers_as_the_call_would_and_leaves_nothing(
    api: Api, tenant: Tenant, api_database_url: str, writes: list[tuple[str, Any]]
) -> None:
    for path, body in writes:
        before = count_rows(api_database_url, tenant)
        dry = api.post(f"{path}?dry_run=true", body, idempotency_key="not a\tkey" if path == "/v1/stores" else None)
        assert count_rows(api_database_url, tenant) == before, path
        assert dry.header("x-dry-run") == "true"
        real = api.post(path, body)
        assert real.header("x-dry-run") is None
        assert (dry.status, alike(dry.json())) == (real.status, alike(real.json())), path


def test_ids_of_what_is_new_are_nil_and_those_of_what_is_there_are_real(api: Api, store: dict[str, Any]) -> None:
    event = api.post("/v1/sales-events?dry_run=true", samples.sale(store["id"], profile_id=samples.unique())).json()
    assert event["sales_event"]["id"] == f"evt_{NIL}"
    assert event["sales_event"]["profile"]["id"] == f"prof_{NIL}"
    assert event["sales_event"]["store"]["id"] == store["id"]
    assert api.post("/v1/stores?dry_run=true", samples.store()).json()["id"] == f"store_{NIL}"
    consent = api.post("/v1/subscriptions/opt-in?dry_run=true", samples.opt_in()).json()
    assert (consent["subscription"]["id"], consent["outcome"]) == (f"sub_{NIL}", "created")
    profile = api.post("/v1/profiles", samples.profile()).json()
    assert api.post("/v1/profiles?dry_run=true", {"external_id": profile["external_id"]}).json()["id"] == profile["id"]


def test_a_key_is_ignored_and_stays_free(api: Api) -> None:
    body, key = samples.profile(), samples.unique()
    assert api.post("/v1/profiles?dry_run=true", body, idempotency_key=key).status == 201
    again = api.post("/v1/profiles?dry_run=true", body, idempotency_key=key)
    assert (again.status, again.is_replay) == (201, False)
    real = api.post("/v1/profiles", body, idempotency_key=key)
    assert (real.status, real.is_replay) == (201, False)
    replayed = api.post("/v1/profiles?dry_run=true", {"external_id": body["external_id"]}, idempotency_key=key)
    assert (replayed.status, replayed.is_replay) == (200, False)


def test_a_refusal_says_that_it_was_a_dry_run_too(api: Api) -> None:
    for body in (samples.profile(external_id="prof_x"), {}):
        refused = api.post("/v1/profiles?dry_run=true", body)
        assert (refused.status, refused.header("x-dry-run")) == (400, "true")
    nowhere = api.post("/v1/sales-events?dry_run=true", samples.sale("nowhere"))
    assert (nowhere.refused, nowhere.header("x-dry-run")) == ((404, "STORE_NOT_FOUND"), "true")


def test_only_true_and_false_are_known_and_only_where_something_is_written(api: Api) -> None:
    body = samples.profile()
    for value in ("1", "yes", "", "TRUE"):
        assert api.post(f"/v1/profiles?dry_run={value}", body).field_errors == [("dry_run", "NOT_ALLOWED")]
    assert api.get(f"/v1/profiles/{body['external_id']}").status == 404
    real = api.post("/v1/profiles?dry_run=false", body)
    assert (real.status, real.header("x-dry-run")) == (201, None)
    assert api.delete(f"/v1/profiles/{real.json()['id']}?dry_run=true").field_errors == [
        ("dry_run", "UNKNOWN_PARAMETER")
    ]
    assert api.get(f"/v1/profiles/{real.json()['id']}").status == 200
    assert api.get("/v1/profiles?dry_run=true").status == 400
