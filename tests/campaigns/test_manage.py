"""A campaign from draft to cancelled, and what is refused with a sentence."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.campaigns.desk import definition

from regulars.campaigns import manage
from regulars.campaigns.approval_rule import ApprovalRule, save_rule
from regulars.conditions.documents import DefinitionRefused
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import SEGMENT, new_uuid
from regulars.kit.refusals import NotFound, NotPossible
from regulars.segments.saved.manage import delete_segment
from regulars.texts.stops import hold


def moment(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


@pytest.mark.parametrize(
    ("more", "place", "message"),
    [
        ({"include": []}, "include", "at least one segment"),
        ({"include": ["seg_01h455vb4pex5vsknk084sn02q"]}, "include[0]", "seg_01h455vb4pex5vsknk084sn02q"),
        ({"exclude_received": ["cmp_01h455vb4pex5vsknk084sn02q"]}, "exclude_received[0]", "There is no campaign"),
        ({"variants": []}, "variants", "at least one text"),
        ({"variants": [{"text": "A", "share": 60}, {"text": "B", "share": 60}]}, "variants", "add up to 120 %"),
        ({"variants": [{"text": "Hi {{ profile.nickname }}"}]}, "variants[0].text", "There is no field"),
        ({"variants": [{"text": "Hi {{ profile.attributes.size }}"}]}, "variants[0].text", "No customer has"),
        ({"variants": [{"text": "You paid {{ ticket.total }}"}]}, "variants[0].text", "has no ticket"),
        ({"variants": [{"text": "x" * 1_600}]}, "variants[0].text", "11 SMS parts"),
        ({"schedule": {"start": "at", "at": moment(-1)}}, "schedule", "in the past"),
        ({"schedule": {"start": "local", "day": moment(-3)[:10], "time": "10:00"}}, "schedule", "in the past"),
        ({"not_after": moment(-1)}, "not_after", "in the past"),
        ({"schedule": {"start": "at", "at": moment(3)}, "not_after": moment(2)}, "not_after", "before the start"),
    ],
)
def test_a_definition_with_a_fault_stays_a_draft(desk, more, place, message):
    found = desk.faults(**more)
    assert [at for at, _ in found] == [place]
    assert message in found[0][1]
    draft = desk.draft(**more)
    with pytest.raises(DefinitionRefused, match="It cannot be sent"):
        desk.act(manage.schedule, draft, confirmed_recipients=1)
    assert desk.load(draft).row.state == "draft"


def test_a_campaign_goes_from_draft_to_cancelled(desk):
    draft = desk.draft(schedule={"start": "at", "at": moment(1)})
    scheduled = desk.act(manage.schedule, draft, confirmed_recipients=10)
    assert (scheduled.state, scheduled.confirmed_recipients, scheduled.confirmed_by) == (
        "scheduled",
        10,
        "ann@shop.example",
    )
    assert scheduled.not_after > scheduled.starts_at
    with pytest.raises(NotPossible, match="scheduled cannot be changed"):
        desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, draft, definition(desk.reachable)))
    with pytest.raises(NotPossible, match="cannot be archived"):
        desk.act(manage.archive, draft)
    assert desk.act(manage.pause, draft).resumes_to == "scheduled"
    assert desk.act(manage.resume, draft).state == "scheduled"
    assert desk.act(manage.cancel, draft).state == "cancelled"
    for refused in (manage.pause, manage.resume, manage.cancel):
        with pytest.raises(NotPossible, match="cancelled"):
            desk.act(refused, draft)
    assert desk.act(manage.archive, draft).is_archived


def test_a_change_of_a_paused_campaign_makes_it_a_draft_that_must_be_confirmed_again(desk):
    campaign = desk.draft(schedule={"start": "at", "at": moment(1)})
    desk.act(manage.schedule, campaign, confirmed_recipients=10)
    desk.act(manage.pause, campaign)
    changed = definition(desk.reachable, name="Other")
    desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, campaign, changed))
    row = desk.load(campaign).row
    assert (row.name, row.state, row.revision, row.confirmed_recipients) == ("Other", "draft", 2, None)


def test_the_second_of_two_people_who_edit_or_send_is_refused(desk):
    draft = desk.draft()
    seen = etag_of(1)
    changed = definition(desk.reachable, name="Other")
    desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, draft, changed, etag=seen))
    with pytest.raises(EtagMismatch):
        desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, draft, changed, etag=seen))
    with pytest.raises(EtagMismatch):
        desk.act(manage.schedule, draft, confirmed_recipients=1, etag=seen)
    desk.act(manage.schedule, draft, confirmed_recipients=1, etag=etag_of(2))
    with pytest.raises(NotPossible, match="scheduled already"):
        desk.act(manage.schedule, draft, confirmed_recipients=1)


def test_nothing_is_sent_while_texts_are_on_hold(desk):
    draft = desk.draft()
    texting = desk.texting
    desk.do(lambda tx: hold(tx, desk.organization_id, texting, reason="Test"))
    with pytest.raises(NotPossible, match="are paused"):
        desk.act(manage.schedule, draft, confirmed_recipients=1, is_now=True)
    assert desk.load(draft).row.state == "draft"


def test_a_paused_campaign_whose_time_has_passed_cannot_be_resumed(desk):
    campaign = desk.draft(schedule={"start": "at", "at": moment(1)})
    desk.act(manage.schedule, campaign, confirmed_recipients=10)
    desk.act(manage.pause, campaign)
    with pytest.raises(NotPossible, match="has passed"):
        desk.act(manage.resume, campaign, now=datetime.now(UTC) + timedelta(days=9))


@pytest.mark.parametrize(
    "cost", [{"EUR": Decimal("NaN")}, {"EUR": Decimal("Infinity")}, {"EUR": Decimal(-1)}, {"QQQ": Decimal(1)}]
)
@pytest.mark.parametrize("has_limit", [True, False])
def test_an_amount_is_finite_and_in_a_known_currency(desk, cost, has_limit):
    if has_limit:
        rule = ApprovalRule(cost_max={"EUR": Decimal(100)})
        desk.do(lambda tx: save_rule(tx, desk.organization_id, rule))
    draft = desk.draft()
    with pytest.raises(NotPossible, match=r"amount|currency"):
        desk.act(manage.schedule, draft, confirmed_recipients=1, confirmed_cost=cost)
    with pytest.raises(NotPossible, match=r"amount|currency"):
        desk.do(lambda tx: save_rule(tx, desk.organization_id, ApprovalRule(cost_max=cost)))


def test_a_segment_in_use_by_a_campaign_cannot_be_deleted_until_it_has_ended(desk):
    campaign = desk.draft()
    segment = SEGMENT.decode(desk.reachable)
    with pytest.raises(NotPossible, match="campaign"):
        desk.do(lambda tx: delete_segment(tx, desk.organization_id, segment))
    desk.act(manage.archive, campaign)
    desk.do(lambda tx: delete_segment(tx, desk.organization_id, segment))


def test_a_duplicate_is_a_draft_without_the_times_of_the_first(desk):
    first = desk.draft(schedule={"start": "at", "at": moment(1)}, not_after=moment(3), holdout_percent=10)
    copy = desk.do(lambda tx: manage.duplicate(tx, desk.organization_id, first, by="ann@shop.example"))
    assert copy.row.state == "draft"
    assert copy.definition == definition(desk.reachable, name="Sale (copy)", holdout_percent=10)


def test_a_campaign_of_another_organization_does_not_exist(desk):
    with pytest.raises(NotFound):
        desk.load(new_uuid())
