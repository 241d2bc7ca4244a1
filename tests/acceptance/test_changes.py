"""`updated_from` (an addition): a list in the order of change, which a caller can follow and miss nothing."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.tenant import Tenant

WAIT_S_MAX = 30.0


def make_profile(api: Api) -> str:
    identifier: str = api.post("/v1/profiles", samples.profile()).json()["id"]
    return identifier


def make_subscription(api: Api) -> str:
    identifier: str = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]["id"]
    return identifier


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


def test_an_organization_without_changes_gets_a_cursor_too(api: Api, table: str, make: Callable[[Api], str]) -> None:
    since = samples.ago(hours=1)
    seen, cursor = walk(api, f"/v1/{table}", updated_from=since)
    assert seen == []
    identifier = make(api)
    assert wait_for(lambda: walk(api, f"/v1/{table}", updated_from=since, cursor=cursor)[0])[0]["id"] == identifier


def test_nothing_is_shown_beyond_a_transaction_that_is_still_open(
    api: Api, table: str, make: Callable[[Api], str], api_database_url: str
) -> None:
    """Whatever it is writing counts as of its beginning, and would be behind a walk that had gone on."""
    since = samples.ago(hours=1)
    with psycopg.connect(api_database_url, application_name="regulars") as writing:
        writing.execute("SELECT 1")
        identifier = make(api)
        # Far enough that the row would be shown, were it not for the open transaction.
        time.sleep(3.0)
        assert walk(api, f"/v1/{table}", updated_from=since)[0] == []
    assert wait_for(lambda: walk(api, f"/v1/{table}", updated_from=since)[0])[0]["id"] == identifier


def wait_for(look: Callable[[], list[Any]]) -> list[Any]:
    deadline = time.monotonic() + WAIT_S_MAX
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def test_filters_go_together_with_it_and_a_cursor_belongs_to_its_own_list(api: Api, table: str) -> None:
    path, since = f"/v1/{table}", samples.ago(hours=1)
    api.post("/v1/profiles", samples.profile())
    _, cursor = walk(api, path, updated_from=since)
    assert api.get(path, cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get(path, updated_from=samples.ago(hours=2), cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get(path, updated_from=since, phone_number="+33612345678").status == 200
    assert api.get(path, updated_from="yesterday").field_errors == [("updated_from", "FORMAT")]
