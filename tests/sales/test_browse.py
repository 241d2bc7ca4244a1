"""Looking at tickets: the list in a bounded stretch, and the inbox of collisions."""

from datetime import UTC, datetime

import pytest
from tests.sales.desk import STORE, ticket

from regulars.kit.ids import new_uuid
from regulars.kit.keyset import PageRequest
from regulars.sales import tickets
from regulars.sales.collision_review import Decision, count_open_collisions, decide, find_collision, list_collisions
from regulars.sales.listing import find_sale
from regulars.sales.personal import anonymise_sales
from regulars.sales.tickets import (
    TicketFilters,
    find_adjacent_tickets,
    list_customer_tickets,
    list_tickets,
    position_of,
)

pytestmark = pytest.mark.anyio


def at(hour):
    return f"2026-03-01T{hour:02}:00:00Z"


@pytest.fixture
async def filled(desk):
    await desk.open_store("LYON-02")
    for outcome in (
        ticket("A", occurred_at=at(10), profile_id="ada"),
        ticket("B", occurred_at=at(12), currency="CHF"),
        ticket("C", occurred_at=at(11), store_id="LYON-02", type="RETURN", profile_id="ada"),
        ticket("D", occurred_at=at(9)),
    ):
        await desk.record(outcome)
    return desk


async def listed(desk, **options):
    filters = TicketFilters(**options)
    async with desk.database.reading() as tx:
        found = await list_tickets(tx, desk.organization_id, filters, PageRequest(50))
    return [line.external_id for line in found]


async def test_tickets_are_listed_by_their_own_time_and_filtered(filled):
    stores = dict(await filled.rows("SELECT external_id, id FROM stores WHERE organization_id = %s"))
    [(ada,)] = await filled.rows("SELECT id FROM profiles WHERE organization_id = %s")
    assert await listed(filled) == ["B", "C", "A", "D"]
    assert await listed(filled, type="RETURN") == ["C"]
    assert await listed(filled, currency="CHF") == ["B"]
    assert await listed(filled, is_identified=True) == ["C", "A"]
    assert await listed(filled, is_identified=False) == ["B", "D"]
    ten, noon = datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert await listed(filled, occurred_from=ten, occurred_to=noon) == ["C", "A"]
    assert await listed(filled, occurred_from=ten, store_id=stores[STORE]) == ["B", "A"]
    assert await listed(filled, store_ids=[stores[STORE]]) == ["B", "A", "D"]
    assert await listed(filled, store_ids=list(stores.values()), occurred_from=ten) == ["B", "C", "A"]
    # A store's and a customer's own tickets come in the order of their arrival.
    assert await listed(filled, store_id=stores[STORE]) == ["D", "B", "A"]
    assert await listed(filled, profile_id=ada) == ["C", "A"]
    assert await listed(filled, profile_id=ada, type="PURCHASE") == ["A"]


@pytest.mark.parametrize("by_store", [False, True])
async def test_a_walk_forward_and_back_sees_every_ticket_once(filled, by_store):
    [(store_id,)] = await filled.rows("SELECT id FROM stores WHERE organization_id = %s AND external_id = 'PARIS-01'")
    filters = TicketFilters(store_id=store_id) if by_store else TicketFilters()
    seen, beyond = [], None
    async with filled.database.reading() as tx:
        while True:
            found = await list_tickets(tx, filled.organization_id, filters, PageRequest(1, beyond))
            if not found:
                break
            seen += found
            beyond = position_of(found[-1])
        last = PageRequest(50, position_of(seen[-1]), is_backward=True)
        back = await list_tickets(tx, filled.organization_id, filters, last)
    assert len({line.id for line in seen}) == len(seen) == (3 if by_store else 4)
    assert back == seen[-2::-1]


@pytest.mark.parametrize(("by_store", "expected"), [(False, [["B"], ["A", "D"], []]), (True, [["D", "B"], ["A"]])])
async def test_a_rare_filter_looks_at_a_bounded_stretch_and_goes_on_from_its_end(
    filled, monkeypatch, by_store, expected
):
    monkeypatch.setattr(tickets, "ROWS_SCANNED_MAX", 2)
    [(store_id,)] = await filled.rows("SELECT id FROM stores WHERE organization_id = %s AND external_id = 'PARIS-01'")
    filters = TicketFilters(type="PURCHASE", store_id=store_id if by_store else None)
    pages, end_position = [], None
    async with filled.database.reading() as tx:
        while end_position is not None or not pages:
            found = await list_tickets(tx, filled.organization_id, filters, PageRequest(5, end_position))
            end_position = found.end_position
            pages.append([line.external_id for line in found])
    assert pages == expected


async def test_a_customer_s_tickets_and_a_ticket_s_neighbours(filled):
    [(ada,)] = await filled.rows("SELECT id FROM profiles WHERE organization_id = %s")
    async with filled.database.reading() as tx:
        hers = await list_customer_tickets(tx, filled.organization_id, ada)
        middle = await find_sale(tx, filled.organization_id, "B")
        assert await find_adjacent_tickets(tx, filled.organization_id, middle) == ("A", "D")
        assert await list_customer_tickets(tx, new_uuid(), ada) == []
    assert [one.external_id for one in hers] == ["C", "A"]
    assert hers[0].line_count == 1


async def inbox(desk, *, is_reviewed=False):
    async with desk.database.reading() as tx:
        return await list_collisions(tx, desk.organization_id, PageRequest(10), is_reviewed=is_reviewed)


async def test_a_collision_waits_until_it_is_decided_and_again_when_something_new_comes(desk):
    [first] = await desk.record(ticket("A", profile_id="ada"))
    await desk.record(ticket("A", profile_id="ada", total_amount_cents=1))
    assert [line.external_id for line in await inbox(desk)] == ["A"]
    async with desk.database.transaction() as tx:
        sale = await find_sale(tx, desk.organization_id, "A")
        collision = await find_collision(tx, desk.organization_id, sale)
        assert [difference.field for difference in collision.comparisons[0].differences] == ["total_amount_cents"]
        assert collision.comparisons[0].differences[0].attempted == "1"
        assert await count_open_collisions(tx, desk.organization_id, count_max=10) == 1
        decided = await decide(
            tx, desk.organization_id, sale.id, Decision.DISMISSED, note="A till in training.", decided_by="c@x.example"
        )
        assert decided
    assert await inbox(desk) == []
    [reviewed] = await inbox(desk, is_reviewed=True)
    assert (reviewed.review, reviewed.note, reviewed.reviewed_by) == ("dismissed", "A till in training.", "c@x.example")
    # The same content again is what was decided about; another one is not.
    await desk.record(ticket("A", profile_id="ada", total_amount_cents=1))
    assert await inbox(desk) == []
    await desk.record(ticket("A", profile_id="ada", total_amount_cents=2))
    assert [line.contents for line in await inbox(desk)] == [2]
    assert first.sale.ticket.total_amount_cents != 1


async def test_lines_are_compared_one_by_one_and_references_by_either_name(desk):
    await desk.record(ticket("A", profile_id="ada"))
    async with desk.database.reading() as tx:
        sale = await find_sale(tx, desk.organization_id, "A")
    store = f"store_{'0' * 26}"
    await desk.record(ticket("A", profile_id="ada", store_id=store))
    async with desk.database.reading() as tx:
        collision = await find_collision(tx, desk.organization_id, sale)
    assert [difference.field for difference in collision.comparisons[0].differences] == ["store_id"]


async def test_an_erasure_takes_the_note_with_the_attempts(desk):
    await desk.record(ticket("A", profile_id="ada"))
    await desk.record(ticket("A", profile_id="ada", total_amount_cents=1))
    async with desk.database.transaction() as tx:
        sale = await find_sale(tx, desk.organization_id, "A")
        await decide(
            tx, desk.organization_id, sale.id, Decision.FIRST_IS_RIGHT, note="Ada said so.", decided_by="c@x.example"
        )
        await anonymise_sales(tx, desk.organization_id, [sale.profile.id])
    [reviewed] = await inbox(desk, is_reviewed=True)
    assert (reviewed.note, reviewed.contents) == (None, 0)


async def test_a_decision_about_nothing_is_none(desk):
    async with desk.database.transaction() as tx:
        assert not await decide(
            tx, desk.organization_id, new_uuid(), Decision.FIRST_IS_RIGHT, note=None, decided_by="c@x.example"
        )
