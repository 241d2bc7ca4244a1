"""Lists of recipients are in the order of outcome and profile id, and read a block of rows, however many there are."""

from uuid import UUID, uuid4

from tests.campaigns.desk import Desk
from tests.support.plans import rows_read, watch

from regulars.campaigns.model import RecipientOutcome
from regulars.campaigns.recipients import (
    RecipientFilter,
    RecipientRow,
    list_recipient_page,
    list_recipients,
    list_recipients_of_person,
    position_of,
)
from regulars.campaigns.retention import erase_recipients
from regulars.campaigns.run import prepare
from regulars.experiments.arms import POSITION_RECIPIENTS, share_position
from regulars.kit.keyset import PageRequest

BLOCK_ROWS = 1_000
MANY = """
    INSERT INTO campaign_recipients (organization_id, campaign_id, profile_id, open_at, created_at, position, block, arm,
                                     outcome)
    SELECT %s, %s, ('00000000-0000-7000-a000-' || lpad(n::text, 12, '0'))::uuid, now(), now(), n, n / 1000, 1,
           CASE n %% 100 WHEN 0 THEN 'failed' ELSE 'delivered' END
    FROM generate_series(0, 19999) AS n
"""


def read_page(desk: Desk, campaign: UUID, filters: RecipientFilter, page: PageRequest) -> list[RecipientRow]:
    return desk.do(lambda tx: list_recipient_page(tx, desk.organization_id, campaign, filters, page))


def list_failed(desk: Desk, campaign: UUID, *, after: RecipientRow | None) -> list[RecipientRow]:
    outcome = RecipientOutcome.FAILED
    return desk.do(
        lambda tx: list_recipients(tx, desk.organization_id, campaign, outcome=outcome, after=after, limit=2)
    )


def test_pages_go_through_all_blocks_forward_and_backward(desk, monkeypatch):
    monkeypatch.setattr(prepare, "BLOCK_RECIPIENTS", 2)
    people = sorted(desk.crowd(7))
    campaign = desk.send(holdout_percent=0)
    desk.feed()
    desk.alter(
        "UPDATE campaign_recipients SET outcome = 'failed' WHERE organization_id = %s AND profile_id = ANY (%s)",
        [people[1], people[4], people[5]],
    )
    blocks = desk.sql(
        "SELECT count(DISTINCT block), max(block) - min(block) FROM campaign_recipients WHERE organization_id = %s"
    )
    assert blocks == [(4, 3)]
    expected = [people[at] for at in (1, 4, 5, 0, 2, 3, 6)]
    pages, position = [], None
    while rows := read_page(desk, campaign, RecipientFilter(), PageRequest(2, position)):
        pages.append(rows)
        position = position_of(rows[-1])
    assert [row.profile_id for rows in pages for row in rows] == expected
    backward = read_page(desk, campaign, RecipientFilter(), PageRequest(4, position_of(pages[2][1]), is_backward=True))
    assert [row.profile_id for row in backward] == expected[1:5][::-1]
    first = list_failed(desk, campaign, after=None)
    assert [row.profile_id for row in first] == [people[1], people[4]]
    assert [row.profile_id for row in list_failed(desk, campaign, after=first[-1])] == [people[5]]


def test_a_page_of_a_large_campaign_reads_few_blocks(desk, monkeypatch):
    campaign = uuid4()
    desk.alter(MANY, campaign)
    desk.do(lambda tx: tx.execute("ANALYZE campaign_recipients"))
    counted = watch(monkeypatch, rows_read)
    for outcome in (None, "failed", "delivered", "waiting"):
        first = read_page(desk, campaign, RecipientFilter(outcome=outcome), PageRequest(51))
        assert len(first) == (0 if outcome == "waiting" else 51)
        for is_backward in (False, True) if first else ():
            position = (first[0].outcome, "10", f"00000000-0000-7000-a000-{10_500:012d}")
            request = PageRequest(51, position, is_backward=is_backward)
            assert len(read_page(desk, campaign, RecipientFilter(outcome=outcome), request)) == 51
    # The rows of a block are counted where they are read and where they are sorted.
    assert counted
    assert max(counted.values()) < 6 * BLOCK_ROWS


def test_a_person_is_found_in_each_campaign_and_erased_from_all(desk):
    [person, *_] = desk.crowd(3)
    campaigns = [desk.send(name=f"Sale {number}", holdout_percent=0) for number in range(3)]
    desk.feed()
    found = desk.do(lambda tx: list_recipients_of_person(tx, desk.organization_id, person, limit=2))
    assert [row.campaign_id for row in found] == sorted(campaigns)[:0:-1]
    rest = desk.do(
        lambda tx: list_recipients_of_person(tx, desk.organization_id, person, before=found[-1].campaign_id, limit=2)
    )
    assert [row.campaign_id for row in rest] == [min(campaigns)]
    desk.do(lambda tx: erase_recipients(tx, desk.organization_id, [person]))
    assert desk.do(lambda tx: list_recipients_of_person(tx, desk.organization_id, person, limit=9)) == []
    assert desk.sql("SELECT count(*) FROM campaign_recipients WHERE organization_id = %s") == [(6,)]


def test_few_recipients_of_a_large_campaign_share_a_position():
    last = (1 << 31) - 1
    assert [share_position(position, recipients=1_000) for position in (0, 5, last)] == [0, 5, last]
    shared = [share_position(position, recipients=32 * POSITION_RECIPIENTS) for position in (0, last // 2, last)]
    assert shared == [0, 15, 31]
