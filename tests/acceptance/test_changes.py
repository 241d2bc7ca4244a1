"""`updated_from` (an addition): a list in the order of change, which a caller can follow and miss nothing."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.tenant import Tenant
from tests.support.waiting import wait_until

from regulars.kit.clock import parse_timestamp
from regulars.kit.ids import SALES_EVENT


def make_profile(api: Api) -> str:
    identifier: str = api.post("/v1/profiles", samples.profile()).json()["id"]
    return identifier


def make_subscription(api: Api) -> str:
    identifier: str = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]["id"]
    return identifier


def make_sale(api: Api) -> str:
    store = api.post("/v1/stores", samples.store()).json()["id"]
    identifier: str = api.post("/v1/sales-events", samples.sale(store)).json()["sales_event"]["id"]
    return identifier


MAKERS = {"profiles": make_profile, "subscriptions": make_subscription, "sales-events": make_sale}


@pytest.fixture(params=["profiles", "subscriptions"])
def table(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def make(table: str) -> Callable[[Api], str]:
    return make_profile if table == "profiles" else make_subscription


class Past:
    """Puts the changes of an organization an hour back, in the order of their ids from the newest on."""

    def __init__(self, url: str, tenant: Tenant, table: str) -> None:
        self._url, self._organization_id, self._table = url, tenant.organization_id, table
        self.start = samples.now().replace(microsecond=0) - timedelta(hours=1)

    def put(self, place: int, moment: datetime) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(
                f"UPDATE {self._table} SET updated_at = %s WHERE organization_id = %s AND id ="  # noqa: S608  # ours
                f" (SELECT id FROM {self._table} WHERE organization_id = %s ORDER BY id OFFSET %s LIMIT 1)",
                (moment, self._organization_id, self._organization_id, place),
            )


@pytest.fixture
def past(api_database_url: str, tenant: Tenant, table: str) -> Past:
    return Past(api_database_url, tenant, table)


def walk(api: Api, path: str, *, cursor: str | None = None, **query: str | int) -> tuple[list[Any], str]:
    """Everything up to the horizon, and where to go on."""
    seen: list[Any] = []
    while True:
        page = api.get(path, **query, **({} if cursor is None else {"cursor": cursor})).json()
        seen += page["data"]
        assert page["next_cursor"] is not None
        cursor = page["next_cursor"]
        if not page["has_more"]:
            return seen, cursor


def test_changes_come_in_their_order_and_the_walk_goes_on_where_it_ended(
    api: Api, table: str, make: Callable[[Api], str], past: Past
) -> None:
    path, ids = f"/v1/{table}", [make(api) for _ in range(5)]
    for place in range(5):
        # The first two at one instant, the others from the newest to the oldest.
        past.put(place, past.start + timedelta(minutes=0 if place < 2 else 10 - place))
    since = samples.at(past.start)
    seen, cursor = walk(api, path, updated_from=since, limit=2)
    assert [it["id"] for it in seen] == [ids[0], ids[1], ids[4], ids[3], ids[2]]
    assert walk(api, path, updated_from=since, cursor=cursor) == ([], cursor)
    past.put(1, past.start + timedelta(minutes=30))
    again, cursor = walk(api, path, updated_from=since, cursor=cursor)
    assert [it["id"] for it in again] == [ids[1]]
    late = samples.at(past.start + timedelta(milliseconds=1))
    assert [it["id"] for it in walk(api, path, updated_from=late)[0]] == [ids[4], ids[3], ids[2], ids[1]]


def test_an_organization_without_changes_gets_a_cursor_too(api: Api, tenant: Tenant, api_database_url: str) -> None:
    since = samples.ago(hours=1)
    cursors = {}
    for table in MAKERS:
        seen, cursors[table] = walk(api, f"/v1/{table}", updated_from=since)
        assert seen == []
    made = make_two_seconds_ago(api, tenant, api_database_url)
    for table, cursor in cursors.items():
        found = wait_until(lambda: walk(api, f"/v1/{table}", updated_from=since, cursor=cursor)[0])  # noqa: B023  # at once
        assert found[0]["id"] == made[table]


def test_nothing_is_shown_beyond_a_transaction_that_is_still_open(
    api: Api, tenant: Tenant, api_database_url: str
) -> None:
    """Whatever it is writing counts as of its beginning, and would be behind a walk that had gone on."""
    since = samples.ago(hours=1)
    with psycopg.connect(api_database_url, application_name="regulars") as writing:
        writing.execute("SELECT 1")
        made = make_two_seconds_ago(api, tenant, api_database_url)
        # They would be shown, were it not for the open transaction.
        with psycopg.connect(api_database_url, autocommit=True) as connection:
            latest = "SELECT clock_timestamp() - interval '2 s' > max(updated_at) FROM subscriptions WHERE organization_id = %s"
            wait_until(lambda: connection.execute(latest, (tenant.organization_id,)).fetchone() == (True,))
        assert [walk(api, f"/v1/{table}", updated_from=since)[0] for table in MAKERS] == [[]] * len(MAKERS)
    for table, identifier in made.items():
        found = wait_until(lambda: walk(api, f"/v1/{table}", updated_from=since)[0])  # noqa: B023  # at once
        assert found[0]["id"] == identifier


def make_two_seconds_ago(api: Api, tenant: Tenant, database_url: str) -> dict[str, str]:
    """One of each; the ids. A little less, so that a transaction of now began no more than two seconds later."""
    for make in MAKERS.values():
        make(api)
    by = timedelta(seconds=1.9)
    with psycopg.connect(database_url, autocommit=True) as connection:
        _put_back(connection, tenant, by)
        for table in ("profiles", "subscriptions"):
            connection.execute(
                f"UPDATE {table} SET updated_at = now() - %s WHERE organization_id = %s",  # noqa: S608  # ours
                (by, tenant.organization_id),
            )
    return {table: api.get(f"/v1/{table}").json()["data"][0]["id"] for table in MAKERS}


def test_filters_go_together_with_it_and_a_cursor_belongs_to_its_own_list(api: Api, table: str) -> None:
    path, since = f"/v1/{table}", samples.ago(hours=1)
    api.post("/v1/profiles", samples.profile())
    _, cursor = walk(api, path, updated_from=since)
    assert api.get(path, cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get(path, updated_from=samples.ago(hours=2), cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get(path, updated_from=since, phone_number="+33612345678").status == 200
    assert api.get(path, updated_from="yesterday").field_errors == [("updated_from", "FORMAT")]


def test_sales_come_in_the_order_of_their_creation_and_the_walk_goes_on_where_it_ended(
    api: Api, tenant: Tenant, api_database_url: str
) -> None:
    store = api.post("/v1/stores", samples.store()).json()["id"]
    path, ids = "/v1/sales-events", [_record(api, store) for _ in range(3)]
    # Several statements, and one for many; a new key of a property takes the path of several too.
    line = samples.line(product={"properties": {samples.unique(): "x"}})
    ids.append(_record(api, store, line_items=[line]))
    batch = {"items": [samples.sale(store, profile_id=None) for _ in range(3)]}
    results = api.post(f"{path}/batch", batch).json()["results"]
    ids += [result["body"]["sales_event"]["id"] for result in results]
    for identifier in ids:
        created_at = parse_timestamp(api.get(f"{path}/{identifier}").json()["created_at"])
        made_at = (SALES_EVENT.decode(identifier) or UUID(int=0)).int >> 80
        assert 0 <= made_at - created_at.timestamp() * 1000 < 1000, "the feed follows ids, by the database's clock"
    since = samples.ago(hours=3)
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        _put_back(connection, tenant, timedelta(hours=2))
        seen, cursor = walk(api, path, updated_from=since, limit=2)
        assert [it["external_id"] for it in seen] == [it["external_id"] for it in api.pages(path)]
        assert len(seen) == len(ids)
        assert walk(api, path, updated_from=since, cursor=cursor) == ([], cursor)
        latest = api.get(f"{path}/{_record(api, store)}").json()
        assert walk(api, path, updated_from=since, cursor=cursor)[0] == [], "it may still be passed by another"
        _put_back(connection, tenant, timedelta(minutes=30))
    again, _ = walk(api, path, updated_from=since, cursor=cursor)
    assert len(again) == 1
    assert again[0]["external_id"] == latest["external_id"]
    # From a time on, to the millisecond, and together with filters.
    from_third = seen[2]["created_at"]
    fitting = [it["id"] for it in seen if it["created_at"] >= from_third] + [again[0]["id"]]
    assert [it["id"] for it in walk(api, path, updated_from=from_third)[0]] == fitting
    assert len(walk(api, path, updated_from=since, external_id=latest["external_id"])[0]) == 1
    assert api.get(path, cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get(path, updated_from="yesterday").field_errors == [("updated_from", "FORMAT")]
    assert walk(api, path, updated_from="0001-01-01T00:00:00Z", limit=200)[0] == [*seen, *again]


def _record(api: Api, store: str, **changes: Any) -> str:
    event: dict[str, Any] = api.post("/v1/sales-events", samples.sale(store, **changes)).json()["sales_event"]
    identifier: str = event["id"]
    return identifier


def _put_back(connection: psycopg.Connection[Any], tenant: Tenant, by: timedelta) -> None:
    """Let the sales of the last minutes have been recorded earlier."""
    rows = connection.execute(
        "SELECT id, created_at FROM sales_events WHERE organization_id = %s AND created_at > now() - interval '10 minutes'",
        (tenant.organization_id,),
    ).fetchall()
    for identifier, created_at in rows:
        earlier = UUID(int=identifier.int - (by // timedelta(milliseconds=1) << 80))
        connection.execute(
            "UPDATE sales_events SET id = %s, created_at = %s WHERE organization_id = %s AND id = %s",
            (earlier, created_at - by, tenant.organization_id, identifier),
        )
