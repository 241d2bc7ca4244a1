"""The global holdout: who is drawn, when, and what a change does to a running quarter."""

from datetime import UTC, date, datetime, timedelta

import pytest

from regulars.experiments.holdout import draw as drawing
from regulars.experiments.holdout.draw import HoldoutDraws
from regulars.experiments.holdout.groups import find_held_out, list_quarters_of
from regulars.experiments.holdout.model import (
    check_percent,
    draw,
    first_whole_day,
    last_day_of,
    next_quarter,
    quarter_of,
)
from regulars.experiments.holdout.settings import change_holdout, is_holdout_being_drawn, load_holdout
from regulars.inbox.personal import PERSONAL_DATA
from regulars.kit.ids import new_uuid
from regulars.texts.errors import SettingRefused
from regulars.work.personal import ErasedPeople

WINTER = datetime(2027, 2, 10, 12, tzinfo=UTC)
SPRING = datetime(2027, 4, 1, 0, 30, tzinfo=UTC)
SUMMER = datetime(2027, 7, 2, tzinfo=UTC)


def draw_all(desk, *, now=None):
    """Passes of the queue until nothing is due."""
    more = {} if now is None else {"now": now}

    async def act(tx):
        queue = HoldoutDraws()
        rows = await queue.take(tx, desk.organization_id, limit=1)
        await queue.act(tx, desk.organization_id, rows)
        return bool(rows)

    while desk.do(act, **more):
        pass


def change(desk, percent, *, now, with_journeys=False):
    return desk.do(
        lambda tx: change_holdout(tx, desk.organization_id, percent=percent, with_journeys=with_journeys, by="ann"),
        now=now,
    )


def held_out(desk, people, *, at):
    return desk.do(lambda tx: find_held_out(tx, desk.organization_id, people, at=at))


def load(desk):
    return desk.do(lambda tx: load_holdout(tx, desk.organization_id))


def test_quarters_begin_in_january_april_july_and_october():
    assert quarter_of(date(2027, 3, 31)) == date(2027, 1, 1)
    assert [quarter_of(date(2027, month, 15)).month for month in range(1, 13)] == [1] * 3 + [4] * 3 + [7] * 3 + [10] * 3
    assert next_quarter(date(2027, 10, 1)) == date(2028, 1, 1)
    assert last_day_of(date(2028, 1, 1)) == date(2028, 3, 31)
    assert first_whole_day(date(2027, 1, 1), date(2027, 1, 1)) == date(2027, 1, 1)
    assert first_whole_day(date(2027, 1, 1), date(2027, 2, 10)) == date(2027, 2, 11)


def test_a_draw_takes_its_share_and_is_independent_of_other_quarters():
    organization_id, people = new_uuid(), [new_uuid() for _ in range(20_000)]
    first, second = (
        {it for it in people if draw(organization_id, quarter, it, percent=20).is_held_out}
        for quarter in (date(2027, 1, 1), date(2027, 4, 1))
    )
    assert 3_700 < len(first) < 4_300
    assert 600 < len(first & second) < 1_000
    assert not any(draw(organization_id, date(2027, 1, 1), it, percent=0).is_held_out for it in people)


@pytest.mark.parametrize("percent", [-1, 21, 100])
def test_a_share_that_leaves_too_few_or_none_is_refused(percent):
    with pytest.raises(SettingRefused, match=f"0 to 20 % of the customers, and this is {percent} %"):
        check_percent(percent)


def test_who_may_be_texted_is_drawn_page_by_page_and_once(desk, monkeypatch):
    monkeypatch.setattr(drawing, "PAGE_CUSTOMERS", 7)
    people = [*desk.customers(40).values()]
    desk.opt_out("+33612300003")
    # A reply that may ask to stop waits for a person.
    desk.reply("please no more of this", number="+33612300005")
    assert not desk.do(lambda tx: is_holdout_being_drawn(tx, desk.organization_id))
    change(desk, 20, now=WINTER)
    assert desk.do(lambda tx: is_holdout_being_drawn(tx, desk.organization_id), now=WINTER)
    assert load(desk).running is None
    draw_all(desk, now=WINTER)
    [quarter] = load(desk).quarters
    stored = dict(desk.sql("SELECT profile_id, is_held_out FROM holdout_customers WHERE organization_id = %s"))
    assert (quarter.customers, quarter.held_out) == (38, sum(stored.values()))
    assert len(stored) == 38
    assert (quarter.begins_on, quarter.ends_on) == (date(2027, 2, 11), date(2027, 3, 31))
    assert held_out(desk, people, at=WINTER) == {it for it, is_held_out in stored.items() if is_held_out}
    assert not desk.do(lambda tx: is_holdout_being_drawn(tx, desk.organization_id), now=WINTER)
    # Drawn again, as after a restore, it gives the same groups.
    desk.alter("DELETE FROM holdout_customers WHERE organization_id = %s")
    desk.alter("DELETE FROM holdout_quarters WHERE organization_id = %s")
    change(desk, 20, now=WINTER)
    draw_all(desk, now=WINTER)
    again = dict(desk.sql("SELECT profile_id, is_held_out FROM holdout_customers WHERE organization_id = %s"))
    assert again == stored


def test_a_quarter_keeps_its_share_and_the_next_one_is_drawn_when_it_begins(desk):
    people = [*desk.customers(100).values()]
    change(desk, 10, now=WINTER)
    draw_all(desk, now=WINTER)
    first = held_out(desk, people, at=WINTER)
    change(desk, 20, now=WINTER)
    draw_all(desk, now=WINTER)
    assert held_out(desk, people, at=SPRING - timedelta(hours=3)) == first
    [(due_at,)] = desk.sql("SELECT due_at FROM holdouts WHERE organization_id = %s")
    assert due_at == SPRING - timedelta(minutes=30)
    # Until the new quarter is drawn, the last one counts.
    assert held_out(desk, people, at=SPRING) == first
    draw_all(desk, now=SPRING)
    second = held_out(desk, people, at=SPRING)
    assert second != first
    spring, winter = load(desk).quarters
    assert (spring.percent, winter.percent) == (20, 10)
    assert (spring.begins_on, spring.held_out) == (date(2027, 4, 1), len(second))
    # An audience of that moment has the groups of that moment.
    assert held_out(desk, people, at=WINTER) == first


def test_no_share_ends_the_quarter_at_once_and_it_is_not_drawn_again(desk):
    people = [*desk.customers(100).values()]
    change(desk, 20, now=WINTER)
    draw_all(desk, now=WINTER)
    assert held_out(desk, people, at=WINTER)
    later = WINTER + timedelta(days=5)
    change(desk, 0, now=later)
    facts = desk.sql("SELECT payload FROM outbox WHERE organization_id = %s AND topic = 'messaging.holdout_quarter'")
    days = [(fact["first_day"], fact["last_day"]) for (payload,) in facts for fact in payload]
    assert days == [("2027-02-11", "2027-03-31"), ("2027-02-11", "2027-02-14")]
    draw_all(desk, now=later)
    assert not held_out(desk, people, at=later)
    assert load(desk).running is None
    change(desk, 10, now=later)
    draw_all(desk, now=later)
    assert not held_out(desk, people, at=later)
    draw_all(desk, now=SPRING)
    assert held_out(desk, people, at=SPRING)


def test_customers_of_quarters_that_ended_long_ago_are_deleted(desk, monkeypatch):
    desk.customers(30)
    change(desk, 20, now=WINTER)
    draw_all(desk, now=WINTER)
    change(desk, 0, now=WINTER)
    monkeypatch.setattr(drawing, "PAGE_CUSTOMERS", 7)
    draw_all(desk, now=SUMMER)
    stored = "SELECT count(*) FROM holdout_customers WHERE organization_id = %s"
    assert desk.sql(stored) == [(30,)]
    draw_all(desk, now=SUMMER + timedelta(days=190))
    assert desk.sql(stored) == [(0,)]
    assert desk.sql("SELECT due_at FROM holdouts WHERE organization_id = %s") == [(None,)]
    assert [it.customers for it in load(desk).quarters] == [30]


def test_a_person_goes_with_their_rows_and_exports_them_before(desk):
    people = [*desk.customers(5).values()]
    change(desk, 20, now=WINTER)
    draw_all(desk, now=WINTER)
    [(quarter, _)] = desk.do(lambda tx: list_quarters_of(tx, desk.organization_id, people[0]))
    assert quarter == date(2027, 1, 1)
    desk.do(lambda tx: PERSONAL_DATA.erase(tx, desk.organization_id, ErasedPeople(profile_ids=[people[0]])))
    assert not desk.do(lambda tx: list_quarters_of(tx, desk.organization_id, people[0]))
    assert desk.sql("SELECT count(*) FROM holdout_customers WHERE organization_id = %s") == [(4,)]


def test_texts_of_people_and_responses_are_never_held_out(desk):
    desk.customers(30)
    change(desk, 20, now=WINTER, with_journeys=True)
    draw_all(desk, now=WINTER)
    for number in range(30):
        desk.order(number=f"+336123{number:05d}")
        desk.reply("HELP", number=f"+336123{number:05d}")
        desk.reply("STOP", number=f"+336123{number:05d}")
    desk.turn()
    assert {reason for _, reason in desk.texts()} <= {None, "no_consent"}
    assert sum("Shop" in text.body for text in desk.gateway.sent) >= 60
