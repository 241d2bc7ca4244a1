"""How many facts are handed over together."""

from tests.support.drain_queues import drain
from tests.work.outbox_desk import Listening, SaleSeen, database, query, record, run

from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.outbox import OutboxQueue
from regulars.work.queue import BATCH_ROWS

__all__ = ["database"]


def test_a_drain_hands_over_every_fact_in_order_and_empties_the_outbox(database, organization_id):
    listening = Listening()
    numbers = list(range(BATCH_ROWS * 2 + 3))

    async def work():
        await record(database, organization_id, *numbers)
        return await drain(database, organization_id, {SaleSeen: {"a": listening}})

    assert run(database, work) == len(numbers)
    assert listening.received == numbers
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]
    assert query(database, "SELECT number FROM received") == [(number,) for number in numbers]
    # What is taken together is handed over together.
    assert [len(call) for call in listening.calls] == [BATCH_ROWS, BATCH_ROWS, 3]


def test_a_batch_ends_with_the_row_that_makes_it_too_large(database, organization_id, monkeypatch):
    listening = Listening()
    monkeypatch.setattr(outbox, "BATCH_CHARACTERS_MAX", 2 * len('[{"number":0}]'))

    async def work():
        await record(database, organization_id, *range(8))
        return await drain(database, organization_id, {SaleSeen: {"a": listening}})

    assert run(database, work) == 8
    assert listening.calls == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_large_facts_of_one_organization_make_no_batch_of_another_smaller(database, organization_id, monkeypatch):
    listening, other = Listening(), new_uuid()
    monkeypatch.setattr(outbox, "BATCH_CHARACTERS_MAX", len('[{"number":100}]'))

    async def work():
        await record(database, organization_id, *range(100, 110))
        await record(database, other, 1)
        await record(database, other, 2)
        worker = OutboxQueue({SaleSeen: {"a": listening}})
        await worker.run_pass(database, organization_id)
        monkeypatch.setattr(outbox, "BATCH_CHARACTERS_MAX", 1 << 18)
        await record(database, other, *range(3, BATCH_ROWS))
        await worker.run_pass(database, other)

    run(database, work)
    assert listening.calls == [[100, 101], list(range(1, BATCH_ROWS))]
