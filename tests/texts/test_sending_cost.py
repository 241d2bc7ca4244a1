"""What a text costs on its way: texts share transactions, and the gate reads only the rows of its numbers."""

import asyncio

import phonenumbers
from phonenumbers import PhoneNumberFormat
from tests.support.desk import NUMBER

from regulars.consent.chain import hash_number
from regulars.texts.number_location import find_country, locate_by_tables, locate_number
from regulars.texts.providers.simulator import Simulator
from regulars.texts.queries.claims import find_counted_texts
from regulars.texts.send import TextQueue

SENT_BEFORE = """
    INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, number_hash, phone_number, body, parts,
                       state, expires_at, created_at, claimed_at)
    SELECT %s, gen_random_uuid(), 'campaign', gen_random_uuid(), '1', decode(md5(it::text), 'hex'), '+33600000000', '',
           1, 'sent', now(), now(), now()
    FROM generate_series(1, 2000) AS it
"""
TEXTS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'texts'"


def test_texts_that_leave_together_share_a_transaction_of_the_simulator(desk):
    desk.texts_queue = TextQueue({"simulator": Simulator(desk.database)})
    numbers = [f"+3361234{number:04d}" for number in range(30)]
    for number in numbers:
        desk.subscribe(number)
        desk.order(number=number)
    desk.turn()
    assert desk.texts() == [("sent", None)] * 30
    [(texts, transactions)] = desk.sql(
        "SELECT count(*), count(DISTINCT xmin::text) FROM simulated_texts WHERE organization_id = %s"
    )
    assert texts == 30
    assert transactions <= 3


def test_a_sender_that_gives_up_does_not_take_the_others_of_its_batch_with_it(desk):
    simulator = Simulator(desk.database)
    texting = desk.texting
    desk.subscribe()
    desk.order()
    desk.turn()
    [outgoing] = desk.gateway.sent

    async def play():
        senders = [asyncio.create_task(simulator.send(outgoing, texting)) for _ in range(3)]
        await asyncio.sleep(0)
        senders[1].cancel()
        return await asyncio.gather(*senders, return_exceptions=True)

    first, cancelled, last = desk.runner.run(play())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert first == last


def test_the_cap_reads_the_texts_of_its_numbers_and_no_others(desk):
    desk.alter(SENT_BEFORE)
    texting = desk.texting

    async def count_read(tx):
        [(before,)] = await tx.fetch(TEXTS_READ)
        hashes = [hash_number(texting.secret, f"{NUMBER}{digit}") for digit in range(10)]
        assert await find_counted_texts(tx, desk.organization_id, hashes, since=tx.now) == {}
        [(after,)] = await tx.fetch(TEXTS_READ)
        return after - before

    assert desk.do(count_read) < 100


def test_the_calling_code_of_a_country_with_one_zone_says_where_a_number_is():
    """The zone is the country's own: the tables of area codes name Paris for Algeria, which knows no summer time."""
    for code, countries in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items():
        for country in countries:
            example = phonenumbers.example_number(country) or phonenumbers.example_number_for_non_geo_entity(code)
            if example is not None:
                number = phonenumbers.format_number(example, PhoneNumberFormat.E164)
                assert locate_number(number).country == locate_by_tables(number).country, number
                assert find_country(number) == phonenumbers.region_code_for_number(example), number
    assert locate_number("+213551234567").zones == ("Africa/Algiers",)
