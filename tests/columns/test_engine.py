"""What the analysis process answers agrees with what explain says, and organizations do not wait for each other."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.columns.fed_shop import FedShop
from tests.support.waiting import until_locked

from regulars.columns import lifecycle
from regulars.columns.column_rows import lock_state
from regulars.columns.feed.build import run_batch
from regulars.columns.model import FORMAT
from regulars.columns.protocol import AnalysisRequest
from regulars.segments.explain import find_members


@pytest.fixture
def fed(shop):
    shop.customer("ann", first_name="Ann")
    shop.customer("cat")
    shop.sale("ann")
    shop.drain()
    shop.begin_and_build()
    return shop


def test_an_opt_in_that_is_older_than_the_opt_out_leaves_the_number_alone(fed):
    """It arrives last and never took effect: no new consent came since, and the number still said stop."""
    fed.customer("eve", phone="+33612345608")
    fed.opt_out("+33612345608")
    fed.customer("eva", phone="+33612345608")
    fed.drain()
    do_not_contact = {"type": "consent", "state": "do_not_contact"}
    assert fed.members(do_not_contact) == by_rows(fed, do_not_contact) == {"eva", "eve"}
    fed.opt_in(None, "+33612345608", ago=timedelta(days=1))
    fed.drain()
    assert fed.members(do_not_contact) == by_rows(fed, do_not_contact) == {"eva", "eve"}


def test_sales_of_the_first_day_there_is_count_as_explain_says(fed):
    """West of Greenwich their local day is in no year."""
    fed.move_to_zone("America/New_York")
    fed.sale("cat", at=datetime(1, 1, 1, 0, 30, tzinfo=UTC))
    fed.drain()
    bought = {"type": "bought", "window": {"from": "0001-01-01", "to": "0001-01-01"}}
    assert fed.members(bought) == by_rows(fed, bought) == {"cat"}
    first = {"type": "first_purchase", "when": {"comparison": "before", "date": "0001-01-02"}}
    assert fed.members(first) == by_rows(fed, first) == {"cat"}


def test_an_anniversary_of_what_is_no_date_is_known_of_no_customer(fed):
    fed.customer("ann", tier="Gold")
    fed.customer("bob")
    fed.drain()
    anniversary = {"type": "attribute", "key": "tier", "comparison": "anniversary_in_next_days", "days": 7}
    counted = fed.figures(fed.query({"type": "none", "of": [anniversary]})).conditions
    assert [one.count for one in counted] == [0, 0]


def by_rows(shop, *conditions) -> set[str]:
    """Who is in it by what explain says of each customer."""
    match = shop.match({"type": "all", "of": list(conditions)})

    async def act(tx) -> set[str]:
        rows = await tx.fetch(
            "SELECT id, external_id FROM profiles WHERE organization_id = %s", (shop.organization_id,)
        )
        names = dict(rows)
        return {names[it] for it in await find_members(tx, shop.organization_id, match, list(names))}

    return shop.do(act)


def test_an_organization_that_takes_long_delays_no_other(fed):
    """Its columns are of another release, and another transaction locks the row that a rebuild needs."""
    other = FedShop(fed.runner, fed.database)
    other.sale("zoe", amount=1)
    other.drain()
    other.begin_and_build()
    fed.alter("UPDATE segment_columns SET format = 0 WHERE organization_id = %s")

    def request(shop) -> AnalysisRequest:
        query = shop.query({"type": "all", "of": []})
        return AnalysisRequest(organization_id=shop.organization_id, query=query, want="figures", deadline_s=60)

    slow, quick = request(fed), request(other)

    async def both() -> None:
        async with fed.database.transaction() as tx:
            await lock_state(tx, fed.organization_id)
            waiting = asyncio.create_task(fed.engine.respond(slow))
            await until_locked(fed.database, "FROM segment_columns")
            answer = await asyncio.wait_for(fed.engine.respond(quick), 10)
            assert answer.figures.total == 1
            assert not waiting.done()
        assert not (await waiting).is_ready

    fed.runner.run(both())


def test_columns_of_a_newer_format_are_left_alone(fed):
    """While nodes are upgraded: the newer worker takes what this one fails on."""
    fed.alter("UPDATE segment_columns SET format = format + 1, build_at = now() WHERE organization_id = %s")
    assert not fed.ask({"type": "all", "of": []}).is_ready
    assert not fed.compact()
    assert not fed.runner.run(run_batch(fed.database, fed.organization_id))
    fed.sale("cat", amount=50)
    fed.drain()
    assert fed.sql("SELECT epoch, format FROM segment_columns WHERE organization_id = %s") == [(1, FORMAT + 1)]
    assert fed.sql("SELECT listener FROM outbox_retries WHERE organization_id = %s") == [("segments.sales",)]


def test_a_worker_of_the_release_before_finds_no_build_to_add_to(fed):
    """It asks for builds by a time that is no longer written."""
    assert fed.do(lambda tx: lifecycle.rebuild(tx, fed.organization_id))
    assert fed.sql("SELECT due_at, build_at IS NULL FROM segment_columns WHERE organization_id = %s") == [(None, False)]


def test_members_come_sorted_the_largest_first_page_by_page(fed):
    fed.sale("cat", amount=500, ago=timedelta(days=9))
    fed.sale("dan", amount=2**62, ago=timedelta(days=5))
    fed.sale("dan", amount=2**62, ago=timedelta(days=4))
    fed.sale("eve", amount=9_000, kind="RETURN")
    fed.drain()

    def sorted_by(order: str, limit: int = 2) -> list[str]:
        names, after = [], None
        while True:
            page = fed.ask(
                {"type": "all", "of": []}, want="members", order=order, currency="EUR", after=after, limit=limit
            )
            assert page.members.total == 4
            found = dict(fed.sql("SELECT id, external_id FROM profiles WHERE organization_id = %s"))
            names += [found[it] for it in page.members.profile_ids]
            after = page.members.next
            if after is None:
                return names

    assert sorted_by("spend") == sorted_by("spend", 3) == ["dan", "ann", "cat", "eve"]
    assert sorted_by("last_purchase") == ["ann", "dan", "cat", "eve"]
    assert sorted(sorted_by("created", 1)) == ["ann", "cat", "dan", "eve"]
