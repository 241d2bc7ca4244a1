"""Purchases are credited to texts, by the queue, as sales and texts arrive and change."""

import asyncio
import random
from datetime import date, timedelta
from operator import attrgetter
from uuid import UUID

import pytest

from regulars.attribution.credits import CreditFilter, list_credits
from regulars.attribution.explain import NoCredit, explain_sale
from regulars.attribution.jobs import CustomerQueue
from regulars.attribution.model import Attributed, Origin
from regulars.attribution.month_sums import CREDITED, read_sums_by_month, read_sums_of, sum_by
from regulars.attribution.month_tables import TotalKey
from regulars.attribution.recompute import request_recompute
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.kit.keyset import PageRequest
from regulars.links.origin_kind import OriginKind
from regulars.privacy.erase import erase_profiles
from regulars.texts.request import resend

CAMPAIGN = new_uuid()
EVER = {"first": date(2000, 1, 1), "last": date(2100, 1, 1)}


@pytest.fixture
def ada(desk):
    desk.customer("ada")
    return "ada"


def text(desk, name, *, hours_ago, **more):
    desk.text(name, ago=timedelta(hours=hours_ago), **more)
    return desk.last_text()


def test_a_purchase_is_credited_to_the_latest_text_of_the_last_24_hours(desk, ada):
    text(desk, ada, hours_ago=20, campaign=CAMPAIGN)
    latest = text(desk, ada, hours_ago=10)
    sale = desk.buy(ada, 1000)
    early = desk.buy(ada, 500, ago=15)
    before = desk.buy(ada, ago=25)
    desk.compute()
    assert desk.credit(sale).text_id == latest
    assert (desk.credit(sale).touch, desk.credit(sale).window_hours) == ("delivery", 24)
    assert desk.credit(early).origin == Origin(OriginKind.CAMPAIGN, CAMPAIGN)
    assert desk.credit(before) is None
    sums = desk.do(lambda tx: read_sums_by_month(tx, desk.organization_id, **EVER))
    assert sum_by(sums, attrgetter("origin")) == {
        Origin(OriginKind.PERSON): {"EUR": Attributed(1, 1000, 1000)},
        Origin(OriginKind.CAMPAIGN, CAMPAIGN): {"EUR": Attributed(1, 500, 500)},
    }


def test_a_return_is_taken_off_the_purchase_and_what_matches_nothing_is_apart(desk, ada):
    text(desk, ada, hours_ago=30, campaign=CAMPAIGN)
    sale = desk.buy(ada, 1000, ago=20)
    desk.bring_back(ada, 400, ago=5)
    desk.bring_back(ada, 70, ago=4, product="B")
    desk.compute()
    assert desk.credit(sale)[-3:] == (1000, 600, 70)
    desk.bring_back(ada, 800, ago=1)
    desk.compute()
    assert desk.credit(sale)[-3:] == (1000, 0, 270)


def test_a_text_that_fails_after_all_loses_its_credit(desk, ada):
    sent = text(desk, ada, hours_ago=2)
    sale = desk.buy(ada)
    desk.compute()
    assert desk.credit(sale) is not None
    desk.alter("UPDATE texts SET state = 'failed' WHERE organization_id = %s AND id = %s", sent)
    # The first credit registered the interest in changes of texts.
    desk.announce([sent], previous_state="sent")
    desk.compute()
    assert desk.credits() == {}


@pytest.mark.parametrize("is_sent_before_its_fact", [False, True])
def test_a_text_that_is_sent_again_loses_the_credits_of_its_first_sending(desk, ada, is_sent_before_its_fact):
    sent = text(desk, ada, hours_ago=3, state="unknown")
    sale = desk.buy(ada, ago=2)
    desk.compute()
    assert desk.credit(sale) is not None
    desk.do(lambda tx: resend(tx, desk.organization_id, sent))
    if is_sent_before_its_fact:
        claim = "UPDATE texts SET state = 'sending', claimed_at = now() WHERE organization_id = %s AND id = %s"
        desk.sql(claim, sent)
    desk.compute()
    assert desk.credits() == {}


def test_a_recomputation_removes_the_credits_of_texts_that_no_longer_count(desk, ada):
    sent = text(desk, ada, hours_ago=3)
    desk.buy(ada, ago=2)
    desk.compute()
    assert desk.credits() != {}
    desk.alter("UPDATE texts SET state = 'queued', claimed_at = NULL WHERE organization_id = %s AND id = %s", sent)
    desk.do(lambda tx: request_recompute(tx, desk.organization_id, by=None))
    desk.compute()
    assert desk.credits() == {}


def test_a_text_of_a_journey_is_credited_by_its_step(desk, ada):
    journey = new_uuid()
    text(desk, ada, hours_ago=2, journey=journey)
    desk.buy(ada, currency="CHF")
    desk.compute()
    sums = desk.do(lambda tx: read_sums_of(tx, desk.organization_id, journey))
    assert sum_by(sums, lambda it: it.origin.step) == {"1": {"CHF": Attributed(1, 1000, 1000)}}


def test_a_period_that_cuts_months_has_the_sums_of_its_days(desk):
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(120)]
    sums = {TotalKey(day, "campaign", CAMPAIGN, "", "EUR"): Attributed(1, day.toordinal()) for day in days}
    desk.do(lambda tx: CREDITED.add(tx, desk.organization_id, sums.items()))
    chance = random.Random(7)
    periods = [sorted(chance.sample(days, 2)) for _ in range(30)] + [[days[0], days[30]], [days[31], days[31]]]
    for first, last in periods:
        found = desk.do(lambda tx: read_sums_by_month(tx, desk.organization_id, first=first, last=last))  # noqa: B023
        expected = sum((it for key, it in sums.items() if first <= key.day <= last), Attributed())
        assert sum((it.sums for it in found), Attributed()) == expected, (first, last)
        assert len({it.month for it in found}) == len(found)


def test_customers_without_texts_are_never_due(desk, ada):
    desk.customer("ben")
    text(desk, ada, hours_ago=2)
    desk.buy("ben")
    desk.buy(None)
    desk.drain()
    assert desk.sql("SELECT FROM attribution_customers WHERE organization_id = %s") == []


def is_due_after_a_sale(desk, name):
    desk.alter("DELETE FROM attribution_customers WHERE organization_id = %s")
    desk.buy(name)
    desk.drain()
    return bool(desk.sql("SELECT FROM attribution_customers WHERE organization_id = %s"))


def test_a_sale_long_after_the_last_text_makes_a_customer_due_only_if_credits_may_change(desk, ada):
    desk.customer("ben")
    text(desk, ada, hours_ago=24 * 8)
    # The organization's first computation registers its interest in changes of texts.
    assert is_due_after_a_sale(desk, ada)
    desk.compute()
    assert not is_due_after_a_sale(desk, ada)
    # A text that waits, one that was sent in the longest window, and one that was never sent.
    sent = text(desk, ada, hours_ago=24 * 8, state="queued")
    change = "UPDATE texts SET state = %s, claimed_at = now() - %s::interval WHERE organization_id = %s AND id = %s"
    for state, ago, is_due in (
        ("queued", None, True),
        ("sent", "6 days", True),
        ("skipped", None, False),
        ("sent", "8 days", False),
    ):
        desk.do(lambda tx: tx.execute(change, (state, ago, desk.organization_id, sent)))  # noqa: B023  # runs at once
        assert is_due_after_a_sale(desk, ada) is is_due, (state, ago)
    # A purchase that has a credit, which a return may change.
    sale = desk.buy(ada, ago=24 * 8 - 1)
    desk.compute()
    assert desk.credit(sale) is not None
    assert is_due_after_a_sale(desk, ada)
    assert not is_due_after_a_sale(desk, "ben")
    # A personal link, whose click may be stored only after the sale.
    [(ben,)] = desk.sql("SELECT id FROM profiles WHERE organization_id = %s AND external_id = 'ben'")
    desk.alter(
        "INSERT INTO links (organization_id, code, url, origin_kind, origin_id, step, created_at, personal_since, text_id,"
        " profile_id) VALUES (%s, 'code', 'opt-out', 'campaign', %s, '', now(), now(), %s, %s)",
        CAMPAIGN,
        sent,
        ben,
    )
    assert not is_due_after_a_sale(desk, "ben")
    desk.alter("UPDATE links SET url = 'https://shop.example' WHERE organization_id = %s")
    assert is_due_after_a_sale(desk, "ben")


def test_a_sale_during_a_computation_makes_its_customer_due_again(desk, ada):
    """The computation has read the sales, and its credits are not visible yet."""
    text(desk, ada, hours_ago=24 * 8)
    desk.buy(ada, ago=24 * 8 - 1)
    desk.drain()
    # The row of a customer who is being computed is visible until the computation ends.
    assert desk.sql("SELECT FROM attribution_customers WHERE organization_id = %s")
    desk.alter("UPDATE attribution_customers SET due_at = NULL WHERE organization_id = %s")
    desk.bring_back(ada)
    desk.drain()
    assert desk.sql("SELECT FROM attribution_customers WHERE organization_id = %s AND due_at IS NOT NULL")


def test_a_credit_is_frozen_60_days_after_its_text(desk, ada):
    text(desk, ada, hours_ago=24 * 59)
    sale = desk.buy(ada, ago=24 * 59 - 2)
    desk.compute()
    assert desk.credit(sale).net_cents == 1000
    desk.alter("UPDATE attributed_sales SET sent_at = now() - interval '60 days' WHERE organization_id = %s")
    desk.alter("UPDATE texts SET claimed_at = now() - interval '60 days' WHERE organization_id = %s")
    desk.bring_back(ada, ago=24 * 40)
    late = desk.buy(ada, ago=24 * 60 - 1)
    desk.compute()
    assert desk.credit(sale).net_cents == 1000
    assert desk.credit(late) is None


def test_an_erasure_freezes_the_figures_and_removes_the_person_and_the_text(desk, ada):
    text(desk, ada, hours_ago=2, campaign=CAMPAIGN)
    sale = desk.buy(ada)
    # It is not computed yet: the erasure does that.
    desk.erase(ada)
    credit = desk.credit(sale)
    assert (credit.profile_id, credit.text_id, credit.net_cents) == (None, None, 1000)
    desk.compute()
    assert desk.credit(sale) == credit
    assert desk.sql("SELECT FROM attribution_customers WHERE organization_id = %s") == []


def test_figures_stay_when_texts_are_deleted_after_their_retention(desk, ada):
    text(desk, ada, hours_ago=2)
    sale = desk.buy(ada)
    desk.compute()
    desk.alter("UPDATE attributed_sales SET sent_at = now() - interval '800 days' WHERE organization_id = %s")
    desk.alter("DELETE FROM texts WHERE organization_id = %s")
    text(desk, ada, hours_ago=1)
    desk.buy(ada, ago=-0.001)
    desk.compute()
    assert desk.credit(sale) is not None


def test_texts_from_before_the_first_computation_are_credited_however_old(desk, ada):
    text(desk, ada, hours_ago=24 * 200, campaign=CAMPAIGN)
    sale = desk.buy(ada, ago=24 * 200 - 3)
    desk.bring_back(ada, 400, ago=24 * 190)
    # As the migration requests it, for an organization that is a year old.
    desk.alter(
        "INSERT INTO attribution_recomputes (organization_id, since, walked_to, until, due_at, requested_at)"
        " VALUES (%s, now() - interval '365 days', %s, %s, now() - interval '1 s', now())",
        UUID(int=0),
        UUID(int=2**128 - 1),
    )
    desk.compute()
    assert desk.credit(sale).net_cents == 600
    desk.buy(ada)
    desk.compute()
    assert desk.credit(sale).net_cents == 600


def test_workers_and_an_erasure_at_the_same_time_credit_each_purchase_once(desk):
    names = [f"c{number}" for number in range(6)]
    for name in names:
        desk.customer(name)
        text(desk, name, hours_ago=2, campaign=CAMPAIGN)
        desk.buy(name)
    desk.drain()
    desk.alter("UPDATE attribution_customers SET due_at = now() - interval '1 s' WHERE organization_id = %s")

    async def at_once():
        async def erase(name):
            async with desk.database.transaction() as tx:
                await erase_profiles(tx, desk.organization_id, [ByExternalId(name)], secret=desk.secret)

        queues = [CustomerQueue() for _ in range(3)]
        await asyncio.gather(
            *(queue.run_pass(desk.database, desk.organization_id) for queue in queues), erase("c1"), erase("c4")
        )

    desk.runner.run(at_once())
    desk.compute()
    sums = desk.do(lambda tx: read_sums_by_month(tx, desk.organization_id, **EVER))
    assert sum_by(sums, attrgetter("currency")) == {"EUR": {"EUR": Attributed(6, 6000, 6000)}}
    assert sum(it.profile_id is None for it in desk.credits().values()) == 2


def test_the_list_of_tickets_is_read_page_by_page(desk, ada):
    text(desk, ada, hours_ago=10, campaign=CAMPAIGN)
    sales = {desk.buy(ada, ago=ago) for ago in (1, 2, 3)}
    desk.compute()

    def page(position=None, **wanted):
        request = PageRequest(2, position)
        return desk.do(lambda tx: list_credits(tx, desk.organization_id, CreditFilter(**wanted), request))

    first = page(origin_id=CAMPAIGN, currency="EUR")
    rest = page(first[-1].position, origin_id=CAMPAIGN, currency="EUR")
    assert [len(first), len(rest)] == [2, 1]
    assert {line.credit.sale_id for line in (*first, *rest)} == sales
    assert rest[0].ticket_number
    assert len(page(text_id=desk.last_text())) == 2
    assert page(text_id=new_uuid()) == page(currency="CHF") == []


def explain(desk, sale_id):
    [(kind, profile_id, occurred_at)] = desk.sql(
        "SELECT type, profile_id, occurred_at FROM sales_events WHERE organization_id = %s AND id = %s", sale_id
    )
    return desk.do(
        lambda tx: explain_sale(
            tx,
            desk.organization_id,
            sale_id,
            is_return=kind == "RETURN",
            profile_id=profile_id,
            occurred_at=occurred_at,
        )
    )


def test_a_ticket_says_which_text_it_is_credited_to_or_why_none(desk, ada):
    desk.customer("ben")
    text(desk, ada, hours_ago=48)
    inside, outside = desk.buy(ada, ago=40), desk.buy(ada, ago=1)
    assert explain(desk, inside).reason is NoCredit.WAITING
    desk.compute()
    assert explain(desk, inside).credit == desk.credit(inside)
    assert explain(desk, outside)[1:] == (NoCredit.OUTSIDE_WINDOW, explain(desk, outside).touch, timedelta(hours=24))
    assert explain(desk, desk.buy(ada, ago=50)).reason is NoCredit.NO_TEXT
    assert explain(desk, desk.buy("ben")).reason is NoCredit.NO_TEXT
    assert explain(desk, desk.buy(None)).reason is NoCredit.NO_CUSTOMER
    assert explain(desk, desk.bring_back(ada)).reason is NoCredit.RETURN
