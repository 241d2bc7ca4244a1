"""Versions of the attribution windows, and the preview of a change."""

import json
from datetime import timedelta
from uuid import UUID

import pytest
from tests.attribution.test_credits import ada, explain, text
from tests.attribution.test_oracle import INSERT_TEXTS

from regulars.attribution.explain import NoCredit
from regulars.attribution.model import Attributed, Windows
from regulars.attribution.windows import (
    SAMPLE_TEXTS,
    WindowsChanged,
    check_windows,
    find_windows,
    list_versions,
    preview_windows,
    save_windows,
)
from regulars.kit.ids import first_id_at, new_uuid

__all__ = ["ada"]


def test_a_change_of_the_windows_shows_before_and_after_and_computes_anew(desk, ada):
    text(desk, ada, hours_ago=48)
    sale = desk.buy(ada, ago=10)
    desk.compute()
    assert desk.credits() == {}
    wider = Windows(click_days=5, delivery_hours=72)
    shown = desk.do(lambda tx: preview_windows(tx, desk.organization_id, wider))
    assert (shown.before, shown.after, shown.customers) == ({}, {"EUR": Attributed(1, 1000, 1000)}, 1)
    assert not shown.is_sample
    # Such as a response to STOP, which has no customer.
    desk.alter("INSERT INTO text_totals VALUES (%s, current_date, 'sent', 2, 2)")
    assert not desk.do(lambda tx: preview_windows(tx, desk.organization_id, wider)).is_sample
    desk.do(lambda tx: save_windows(tx, desk.organization_id, wider, expected=0, by="ann"))
    desk.compute()
    assert desk.credit(sale).window_hours == 72
    assert desk.do(lambda tx: find_windows(tx, desk.organization_id)).windows == wider
    with pytest.raises(WindowsChanged):
        desk.do(lambda tx: save_windows(tx, desk.organization_id, Windows(), expected=0, by="ben"))
    desk.do(lambda tx: save_windows(tx, desk.organization_id, Windows(), expected=1, by="ben"))
    desk.compute()
    assert desk.credits() == {}
    versions = desk.do(lambda tx: list_versions(tx, desk.organization_id))
    assert [(it.version, it.created_by) for it in versions] == [(2, "ben"), (1, "ann"), (0, None)]


def test_a_ticket_names_the_window_of_the_time_when_the_figures_of_its_text_became_final(desk, ada):
    text(desk, ada, hours_ago=61 * 24)
    final = desk.buy(ada, ago=59 * 24)
    text(desk, ada, hours_ago=58 * 24)
    later = desk.buy(ada, ago=55 * 24)
    desk.do(lambda tx: save_windows(tx, desk.organization_id, Windows(delivery_hours=50), expected=0, by="ann"))
    desk.compute()
    for sale, hours in ((final, 24), (later, 50)):
        explained = explain(desk, sale)
        assert (explained.reason, explained.window) == (NoCredit.OUTSIDE_WINDOW, timedelta(hours=hours))


def test_a_text_that_was_requested_65_days_ago_and_sent_later_is_computed_anew(desk, ada):
    sent = text(desk, ada, hours_ago=58 * 24)
    sale = desk.buy(ada, ago=56 * 24)

    async def request_earlier(tx):
        earlier = first_id_at(tx.now - timedelta(days=65))
        await tx.execute(
            "UPDATE texts SET id = %s, created_at = %s WHERE organization_id = %s AND id = %s",
            (earlier, tx.now - timedelta(days=65), desk.organization_id, sent),
        )

    desk.do(request_earlier)
    desk.compute()
    assert desk.credits() == {}
    desk.do(lambda tx: save_windows(tx, desk.organization_id, Windows(delivery_hours=72), expected=0, by="ann"))
    desk.compute()
    assert desk.credit(sale).window_hours == 72


def test_the_sample_of_a_preview_has_the_recipients_of_a_campaign_of_three_hours(desk):
    """Among texts of journeys to one customer in each of 1,000 other hours."""

    async def insert(tx):
        journeys = [(tx.now - timedelta(hours=hour), 0, UUID(int=1)) for hour in range(10, 1_010)]
        campaign = [(tx.now - timedelta(hours=hour), n, new_uuid()) for hour in range(2, 5) for n in range(1_500)]
        rows = [
            {
                "id": UUID(int=first_id_at(at).int + n),
                "kind": "person",
                "origin_id": new_uuid(),
                "profile_id": customer,
                "state": "sent",
                "at": at,
            }
            for at, n, customer in journeys + campaign
        ]
        await tx.execute(INSERT_TEXTS, (desk.organization_id, json.dumps(rows, default=str)))
        await tx.execute(
            "INSERT INTO text_totals (organization_id, day, state, texts, parts) VALUES (%s, %s, 'sent', %s, 0)",
            (desk.organization_id, tx.now.date(), len(rows)),
        )

    desk.do(insert)
    shown = desk.do(lambda tx: preview_windows(tx, desk.organization_id, Windows()))
    assert (shown.texts, shown.is_sample) == (SAMPLE_TEXTS, True)
    assert shown.customers > SAMPLE_TEXTS * 0.75


@pytest.mark.parametrize(
    ("windows", "sentence"),
    [
        (Windows(click_days=0), "The window after a click is 1 to 30 days."),
        (Windows(click_days=3653), "The window after a click is 1 to 30 days."),
        (Windows(delivery_hours=87_660), "The window after a delivery is 1 to 168 hours."),
        (Windows(lift_days=-1), "Lift is measured for 1 to 30 days after the last text."),
    ],
)
def test_a_window_of_no_time_or_of_ten_years_is_refused(windows, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_windows(windows)
