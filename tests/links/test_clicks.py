"""Clicks on short links: counted once by class, which of them are touches, and what is kept of them."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.inbox.test_erasure import customer
from tests.links.test_links import LINK, SHOP, host, opened, sent_links, words
from tests.support.waiting import until_locked

from regulars.inbox.personal import export_clicks
from regulars.kit.ids import new_uuid
from regulars.links.clicks import ClickLog, store_clicks
from regulars.links.counts import ClickCount, count_clicks, find_creditable_clicks
from regulars.links.facts import LinkClicked
from regulars.links.model import (
    CODES_OF_ADDRESS_PER_MINUTE_MAX,
    CODES_PER_MINUTE_MAX,
    Click,
    ClickClass,
    CreditableClick,
    classify_request,
)
from regulars.links.origin_kind import OriginKind
from regulars.links.retention import RETENTION, sweep_click_traces, sweep_clicks
from regulars.work.outbox import register_interest
from regulars.work.personal import DataSubject

__all__ = ["host", "opened"]

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Version/17.5 Safari/604.1"
NOW = datetime(2026, 3, 2, 10, 5, 30, tzinfo=UTC)
MINUTE = NOW.replace(second=0)


class Campaign:
    """A campaign whose texts have links."""

    def __init__(self, desk):
        self.desk = desk
        self.id = new_uuid()

    def text(self, profile_id=None, *, arm="1", is_personal=True, sent_at=NOW - timedelta(hours=1)):
        """The code of the link in a text, and the text."""
        text_id = self.desk.order(
            words(LINK),
            origin_kind=OriginKind.CAMPAIGN,
            origin_id=self.id,
            step=str(new_uuid()),
            profile_id=profile_id,
            link_origin=(self.id, arm),
            has_personal_links=is_personal,
        )
        change = "UPDATE texts SET claimed_at = %s WHERE organization_id = %s AND id = %s"
        self.desk.do(lambda tx: tx.execute(change, (sent_at, self.desk.organization_id, text_id)))
        [(body,)] = self.desk.sql("SELECT body FROM texts WHERE organization_id = %s AND id = %s", text_id)
        return body.partition("/l/")[2][4:12], text_id

    def counts(self):
        desk = self.desk
        found = desk.do(lambda tx: count_clicks(tx, desk.organization_id, OriginKind.CAMPAIGN, [self.id]))
        return found.get(self.id, {})


@pytest.fixture
def campaign(desk, host):
    return Campaign(desk)


def click(code, *, at=NOW, address="192.0.2.1", agent=PHONE, class_=ClickClass.PERSON):
    return Click(new_uuid(), code, at, class_, address, agent)


def store(desk, *clicks, now=NOW):
    desk.do(lambda tx: store_clicks(tx, desk.organization_id, clicks), now=now)


def touches(desk, *profile_ids):
    since, until = NOW - timedelta(days=5), NOW + timedelta(days=1)
    return desk.do(lambda tx: find_creditable_clicks(tx, desk.organization_id, profile_ids, since=since, until=until))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"user-agent": PHONE}, ClickClass.PERSON),
        ({"user-agent": "Mozilla/5.0 (Linux; Android 9; CUBOT X19) Chrome/120 Mobile"}, ClickClass.PERSON),
        ({"user-agent": PHONE, "sec-purpose": "prefetch;prerender"}, ClickClass.MACHINE),
        ({"user-agent": PHONE, "purpose": "prefetch"}, ClickClass.MACHINE),
        ({"user-agent": PHONE, "x-purpose": "preview"}, ClickClass.MACHINE),
        ({"user-agent": "facebookexternalhit/1.1 Facebot Twitterbot/1.0"}, ClickClass.MACHINE),
        ({"user-agent": "WhatsApp/2.23.20.0"}, ClickClass.MACHINE),
        ({"user-agent": "Mozilla/5.0 (compatible; Googlebot/2.1)"}, ClickClass.MACHINE),
        ({"user-agent": "python-requests/2.31"}, ClickClass.MACHINE),
        ({}, ClickClass.MACHINE),
    ],
)
def test_a_request_says_whether_it_is_probably_of_a_machine(headers, expected):
    assert classify_request(headers) is expected


def test_opening_a_link_counts_it_by_class_and_looking_at_its_head_does_not(desk, opened):
    desk.subscribe()
    origin = new_uuid()
    desk.order(words(LINK), origin_id=origin)
    desk.turn()
    [link] = sent_links(desk)
    opened(link)
    opened(link, agent=PHONE, **{"Sec-Purpose": "prefetch"})
    opened(link, method="HEAD")
    found = desk.do(lambda tx: count_clicks(tx, desk.organization_id, OriginKind.PERSON, [origin]))
    assert found == {origin: {"1": ClickCount(people=1, machines=1)}}
    rows = desk.sql(
        "SELECT class, minute = date_trunc('minute', minute), address FROM clicks WHERE organization_id = %s"
    )
    assert sorted(rows) == [("machine", True, "127.0.0.1"), ("person", True, "127.0.0.1")]


def test_only_personal_clicks_by_people_are_touches(desk, campaign):
    ann, bob = customer(desk, "ann"), customer(desk, "bob", "+33612345679")
    desk.do(lambda tx: register_interest(tx, desk.organization_id, LinkClicked, needed_by="test"))
    own, text_id = campaign.text(ann)
    of_bob, _ = campaign.text(bob)
    shared, _ = campaign.text(ann, is_personal=False, arm="2")
    store(desk, click(own), click(own), click(shared), click(of_bob, class_=ClickClass.MACHINE))
    assert touches(desk, ann, bob) == [CreditableClick(ann, text_id, MINUTE)]
    assert campaign.counts() == {"1": ClickCount(people=2, machines=1), "2": ClickCount(people=1)}
    [(payload,)] = desk.sql(
        "SELECT payload::text FROM outbox WHERE organization_id = %s AND topic = %s", LinkClicked.topic
    )
    assert payload.count(str(ann)) == 1
    assert str(bob) not in payload


def test_a_click_within_two_seconds_of_sending_is_a_machine_s(desk, campaign):
    ann = customer(desk, "ann")
    soon, _ = campaign.text(ann, sent_at=NOW - timedelta(seconds=1.9))
    later, text_id = campaign.text(ann, sent_at=NOW - timedelta(seconds=2))
    store(desk, click(soon), click(later))
    assert touches(desk, ann) == [CreditableClick(ann, text_id, MINUTE)]


def test_one_address_that_opens_many_codes_in_a_minute_is_a_machine_from_the_first_click_on(desk, campaign):
    people = [customer(desk, f"c{n}", f"+336123450{n:02d}") for n in range(CODES_PER_MINUTE_MAX + 1)]
    codes = [campaign.text(it)[0] for it in people]
    store(desk, *(click(code) for code in codes[:-1]))
    assert len(touches(desk, *people)) == CODES_PER_MINUTE_MAX
    # Another address is a customer of its own, and so is the same address an hour later.
    store(desk, click(codes[0], address="192.0.2.2"), click(codes[-1], at=NOW + timedelta(seconds=50)))
    assert [it.profile_id for it in touches(desk, *people)] == [people[0]]
    assert campaign.counts() == {"1": ClickCount(people=1, machines=CODES_PER_MINUTE_MAX + 1)}
    store(desk, click(codes[1], at=NOW + timedelta(hours=1)), now=NOW + timedelta(hours=1))
    assert len(touches(desk, *people)) == 2


def test_clicks_that_waited_for_the_database_are_classified_by_their_own_minute(desk, campaign):
    codes = [campaign.text()[0] for _ in range(CODES_PER_MINUTE_MAX + 1)]
    later = NOW + timedelta(hours=2)
    # One phone after the other, and then all at once.
    store(desk, *(click(code, at=NOW + n * timedelta(seconds=10)) for n, code in enumerate(codes)), now=later)
    assert campaign.counts() == {"1": ClickCount(people=len(codes))}
    at = NOW + timedelta(hours=1)
    store(desk, *(click(code, at=at + n * timedelta(seconds=5)) for n, code in enumerate(codes)), now=later)
    assert campaign.counts() == {"1": ClickCount(people=len(codes), machines=len(codes))}


def test_one_address_that_opens_very_many_codes_is_a_machine_whatever_its_user_agents(desk, campaign):
    codes = [campaign.text()[0] for _ in range(CODES_OF_ADDRESS_PER_MINUTE_MAX + 1)]
    store(desk, *(click(code, agent=f"{PHONE} {n}") for n, code in enumerate(codes[:-1])))
    assert campaign.counts() == {"1": ClickCount(people=CODES_OF_ADDRESS_PER_MINUTE_MAX)}
    store(desk, click(codes[-1], at=NOW + timedelta(seconds=20)), click(codes[0], address="192.0.2.2"))
    assert campaign.counts() == {"1": ClickCount(people=1, machines=len(codes))}


def test_clicks_that_could_not_be_written_wait_and_are_counted_once(desk, campaign):
    """A write that a stop cancels, and one whose commit is unknown."""
    code, _ = campaign.text()
    log, one = ClickLog(desk.database), click(code)
    store(desk, click(code))

    async def write_while_locked():
        log.record(desk.organization_id, one)
        async with desk.database.transaction() as tx:
            await tx.fetch("SELECT 1 FROM click_totals WHERE organization_id = %s FOR UPDATE", (desk.organization_id,))
            stopped = asyncio.create_task(log.write())
            await until_locked(desk.database)
            stopped.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopped

    desk.runner.run(write_while_locked())
    assert campaign.counts() == {"1": ClickCount(people=1)}
    store(desk, one)
    desk.runner.run(log.write())
    assert campaign.counts() == {"1": ClickCount(people=2)}


def test_where_a_click_came_from_is_deleted_after_an_hour_and_the_click_after_25_months(desk, campaign):
    ann = customer(desk, "ann")
    own, _ = campaign.text(ann)
    shared, _ = campaign.text(ann, is_personal=False)
    now = desk.sql("SELECT now() WHERE %s::uuid IS NOT NULL")[0][0]
    store(desk, click(own, at=now - timedelta(hours=2)), click(shared, at=now), now=now)
    desk.runner.run(sweep_click_traces(desk.database, desk.organization_id))
    left = "SELECT address, agent, traced_at IS NULL FROM clicks WHERE organization_id = %s ORDER BY code = %s"
    assert desk.sql(left, own) == [("192.0.2.1", PHONE, False), (None, None, True)]
    old = now - RETENTION - timedelta(days=1)
    age = "UPDATE {} SET {} = %s WHERE organization_id = %s AND {} IS NOT NULL"
    for table, column in (("clicks", "minute"), ("links", "personal_since")):
        statement = age.format(table, column, column)
        desk.do(lambda tx, statement=statement: tx.execute(statement, (old, desk.organization_id)))
    desk.runner.run(sweep_clicks(desk.database, desk.organization_id))
    assert desk.sql("SELECT count(*) FROM clicks WHERE organization_id = %s") == [(0,)]
    assert desk.sql("SELECT code FROM links WHERE organization_id = %s") == [(shared,)]
    assert campaign.counts() == {"1": ClickCount(people=2)}


def test_the_clicks_of_a_person_are_in_their_export(desk, campaign):
    ann = customer(desk, "ann")
    own, _ = campaign.text(ann)
    store(desk, click(own))

    async def read():
        person = DataSubject(organization_id=desk.organization_id, profile_id=ann, secret=secret)
        return b"".join([piece async for piece in export_clicks(desk.database, person)])

    secret = desk.texting.secret
    exported = desk.runner.run(read()).decode()
    assert SHOP in exported
    assert "2026-03-02T10:05:00.000Z" in exported
