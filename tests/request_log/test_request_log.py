"""The request log: noted within requests, written outside of them, and bounded on every side."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from regulars.kit.clock import monotonic
from regulars.kit.ids import PROFILE, new_uuid
from regulars.kit.keyset import PageRequest
from regulars.kit.metrics import ResponseRecord
from regulars.kit.settings import Settings
from regulars.organizations.model import ApiCaller
from regulars.request_log import queries, recorder
from regulars.request_log.entries import PERSONAL_DATA, count_responses, find_response, list_responses, sweep
from regulars.request_log.model import ENTRIES_PER_KEY_MAX, RETENTION, ResponseFilter, mask_target
from regulars.request_log.recorder import REFUSALS_PER_WRITE_MAX, SUCCESSES_PER_WRITE_MAX, RequestLog
from regulars.server import api_routes
from regulars.work.personal import ErasedPeople

pytestmark = pytest.mark.anyio

ROUTES = {route.operation_id: route for route in api_routes(Settings())}
REFUSAL = msgspec.json.encode({"code": "STORE_NOT_FOUND", "detail": "No store has this id or external_id."})


def answered(status=201, *, operation="recordSalesEvent", references=(), problem=b"") -> ResponseRecord:
    now = monotonic()
    route = ROUTES[operation]
    return ResponseRecord(route.method, route.path, references, "req_1", status, now - 0.009, now, problem)


EVERYTHING = PageRequest(10_000)


@pytest.fixture
def caller(organization_id) -> ApiCaller:
    return ApiCaller(organization_id, uuid4(), b"", None)


@pytest.fixture
def request_log(database) -> RequestLog:
    return RequestLog(database)


@pytest.fixture
def shown(database, organization_id):
    async def read(kind=ResponseFilter.ALL, *, page=EVERYTHING, **wanted: Any):
        async with database.reading() as tx:
            return await list_responses(tx, organization_id, page, kind=kind, **wanted)

    return read


async def test_an_answer_is_written_a_moment_later_with_what_it_said(request_log, caller, shown, database):
    request_log.record(caller, answered())
    request_log.record(caller, answered(404, problem=REFUSAL))
    assert await shown() == []
    await request_log.write()
    refused, succeeded = sorted(await shown(), key=lambda entry: entry.status, reverse=True)
    assert (succeeded.method, succeeded.target, succeeded.status) == ("POST", "/v1/sales-events", 201)
    assert 8_000 < succeeded.duration_us < 20_000
    assert (succeeded.code, succeeded.problem) == (None, None)
    assert (refused.code, refused.request_id) == ("STORE_NOT_FOUND", "req_1")
    assert refused.problem == REFUSAL.decode()
    async with database.reading() as tx:
        assert await find_response(tx, caller.organization_id, refused.id) == refused
        assert await find_response(tx, uuid4(), refused.id) is None


async def test_the_body_of_a_success_is_never_stored(request_log, caller, shown):
    request_log.record(caller, answered(200, problem=b'{"first_name":"Ada"}'))
    await request_log.write()
    [entry] = await shown()
    assert entry.problem is None


def test_a_path_shows_canonical_ids_and_shops_and_hides_customers_own_ids():
    canonical = PROFILE.encode(new_uuid())
    template = "/v1/profiles/{profile_id}/attributes"
    assert mask_target(template, (canonical,)) == f"/v1/profiles/{canonical}/attributes"
    assert mask_target(template, ("ada@example.org",)) == template
    assert mask_target("/v1/stores/{store_id}", ("PARIS-01",)) == "/v1/stores/PARIS-01"


async def test_of_a_busy_key_only_the_last_answers_are_written_and_all_are_counted(
    request_log, caller, shown, database
):
    for _ in range(1_000):
        request_log.record(caller, answered())
        request_log.record(caller, answered(400, problem=REFUSAL))
    await request_log.write()
    assert len(await shown(ResponseFilter.REFUSED)) == REFUSALS_PER_WRITE_MAX
    assert len(await shown()) == REFUSALS_PER_WRITE_MAX + SUCCESSES_PER_WRITE_MAX
    async with database.reading() as tx:
        counts = await count_responses(tx, caller.organization_id)
    assert (counts[caller.api_key_id].responses, counts[caller.api_key_id].refusals) == (2_000, 1_000)


async def test_a_key_keeps_its_last_thousand(request_log, caller, shown):
    for _ in range(15):
        for _ in range(REFUSALS_PER_WRITE_MAX):
            request_log.record(caller, answered(400, problem=REFUSAL))
        await request_log.write()
    assert ENTRIES_PER_KEY_MAX <= len(await shown()) < ENTRIES_PER_KEY_MAX + recorder.TRIM_AFTER_ENTRIES


async def test_refusals_beyond_the_day_s_limit_are_counted_and_not_stored(request_log, caller, shown, monkeypatch):
    monkeypatch.setattr(recorder, "REFUSALS_PER_DAY_MAX", 30)
    for _ in range(3):
        for _ in range(20):
            request_log.record(caller, answered(400, problem=REFUSAL))
        await request_log.write()
    assert len(await shown()) == 30


async def test_it_is_read_by_key_by_kind_and_page_by_page(request_log, caller, shown):
    other = ApiCaller(caller.organization_id, uuid4(), b"", None)
    for status in (201, 400, 503):
        request_log.record(caller, answered(status, problem=REFUSAL))
    request_log.record(other, answered())
    await request_log.write()
    everything = await shown()
    assert len(everything) == 4
    assert {entry.status for entry in await shown(ResponseFilter.REFUSED)} == {400, 503}
    assert {entry.status for entry in await shown(ResponseFilter.FAILED)} == {503}
    assert [entry.api_key_id for entry in await shown(api_key_id=other.api_key_id)] == [other.api_key_id]
    _, second, third, _ = everything
    assert await shown(page=PageRequest(1, (str(second.id),))) == [third]
    assert await shown(page=PageRequest(1, (str(third.id),), is_backward=True)) == [second]


async def test_another_organization_sees_nothing_of_it(request_log, caller, database):
    request_log.record(caller, answered())
    await request_log.write()
    async with database.reading() as tx:
        assert await list_responses(tx, uuid4(), PageRequest(10)) == []


async def test_an_erasure_removes_the_entries_that_name_the_person(request_log, caller, shown, database):
    erased, other = new_uuid(), new_uuid()
    for profile_id in (erased, other):
        request_log.record(caller, answered(200, operation="getProfile", references=(PROFILE.encode(profile_id),)))
    await request_log.write()
    async with database.transaction() as tx:
        await PERSONAL_DATA.erase(tx, caller.organization_id, ErasedPeople(profile_ids=[erased]))
    [entry] = await shown()
    assert entry.profile_id == other


async def test_after_seven_days_it_is_forgotten(request_log, caller, shown, database):
    request_log.record(caller, answered())
    await request_log.write()
    assert await sweep(database, caller.organization_id) == 0
    async with database.transaction() as tx:
        before = tx.now + timedelta(seconds=1)
        deleted = await queries.delete_entries_before(tx, caller.organization_id, before=before, limit=10)
    assert (deleted, await shown(), RETENTION.days) == (1, [], 7)


async def test_a_database_that_is_gone_costs_entries_and_no_request(caller, database):
    log_of_a_dead_server = RequestLog(database)
    await database.close()
    log_of_a_dead_server.record(caller, answered())
    await log_of_a_dead_server.write()
    log_of_a_dead_server.record(caller, answered())


async def test_of_many_organizations_each_has_its_share_and_only_the_one_that_fails_loses_it(request_log, database):
    callers = [ApiCaller(uuid4(), uuid4(), b"", None) for _ in range(300)]
    for caller in callers:
        for _ in range(recorder.SUCCESSES_PER_WRITE_MIN + 3):
            request_log.record(caller, answered())
    async with database.transaction() as tx:
        await tx.execute(f"ALTER TABLE request_counts ADD CHECK (organization_id <> '{callers[7].organization_id}')")  # type: ignore[arg-type]  # an id of ours
    await request_log.write()
    async with database.reading() as tx:
        rows = await tx.fetch("SELECT organization_id, count(*) FROM request_log GROUP BY 1")
    assert dict(rows) == {
        caller.organization_id: recorder.SUCCESSES_PER_WRITE_MIN for caller in callers if caller is not callers[7]
    }
