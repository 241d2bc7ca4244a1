"""What a running server writes into its request log, by both ways through the HTTP server."""

from typing import Any

import psycopg
import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.tenant import Tenant
from tests.support.waiting import wait_until


@pytest.fixture
def logged(api_database_url: str, tenant: Tenant):
    def read(count: int) -> list[tuple[Any, ...]]:
        """The entries of the caller's key, once there are so many."""

        def find_entries() -> list[tuple[Any, ...]] | None:
            rows = connection.execute(
                "SELECT method, target, status, code, problem::text FROM request_log WHERE organization_id = %s",
                (tenant.organization_id,),
            ).fetchall()
            return rows if len(rows) >= count else None

        with psycopg.connect(api_database_url, autocommit=True) as connection:
            return wait_until(find_entries)

    return read


def test_answers_and_refusals_are_logged_without_anything_about_the_customer(
    api: Api, store: dict[str, Any], logged
) -> None:
    api.post("/v1/sales-events", samples.sale(store["external_id"], profile_id="Ada-Lovelace"))
    api.post("/v1/sales-events", samples.sale("nowhere", profile_id="Ada-Lovelace"))
    api.post("/v1/profiles", {"external_id": "Ada-Lovelace", "first_name": 17, "last_name": "Lovelace"})
    api.get("/v1/profiles/Ada-Lovelace", headers={"X-Request-Id": "mine"})
    rows = logged(5)
    assert {row[:4] for row in rows} == {
        ("POST", "/v1/stores", 201, None),
        ("POST", "/v1/sales-events", 201, None),
        ("POST", "/v1/sales-events", 404, "STORE_NOT_FOUND"),
        ("POST", "/v1/profiles", 400, "VALIDATION_ERROR"),
        ("GET", "/v1/profiles/{profile_id}", 200, None),
    }
    assert "Lovelace" not in str(rows)


def test_a_caller_without_a_key_is_not_logged(api: Api, anonymous: Api, logged) -> None:
    anonymous.get("/v1/stores")
    api.get("/v1/stores")
    assert len(logged(1)) == 1
