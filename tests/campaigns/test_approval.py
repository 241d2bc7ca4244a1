"""What exceeds a limit is sent only after another person approved as much."""

from decimal import Decimal

import pytest
from tests.campaigns.desk import REACHABLE, definition
from tests.support.gateway import ALWAYS

from regulars.accounts.audit.log import COMMAND_LINE, is_person
from regulars.campaigns import manage
from regulars.campaigns.approval import approve
from regulars.campaigns.approval_rule import ApprovalRule, save_rule
from regulars.campaigns.confirmed_numbers import read_question
from regulars.campaigns.errors import ApprovalNeeded
from regulars.kit.etag import EtagMismatch
from regulars.kit.ids import SEGMENT, new_uuid
from regulars.kit.refusals import NotPossible
from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import update_segment
from regulars.texts.settings.model import Price, SmsSettings

GOLD = {"type": "attribute", "key": "tier", "comparison": "is", "value": "gold"}


def limit(desk, recipients=None, **cost):
    rule = ApprovalRule(recipients, {currency: Decimal(amount) for currency, amount in cost.items()})
    desk.do(lambda tx: save_rule(tx, desk.organization_id, rule))


def change(desk, campaign, *, by="ann@shop.example", **more):
    changed = definition(more.pop("segment", desk.reachable), **more)
    desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, campaign, changed, created_by=by))


def change_segment(desk, segment, *conditions, by="ann@shop.example"):
    changed = read_definition(
        b'{"name": "Changed", "match": {"type": "all", "of": [%s]}}' % b",".join(map(json_of, conditions))
    )
    desk.do(lambda tx: update_segment(tx, desk.organization_id, SEGMENT.decode(segment), changed, created_by=by))


def json_of(condition):
    return str(condition).replace("'", '"').encode()


def test_another_person_approves_and_an_edit_voids_it(desk):
    limit(desk, 10)
    draft = desk.draft()
    with pytest.raises(NotPossible, match="Another person"):
        desk.act(approve, draft, recipients=11)
    desk.act(approve, draft, by="bob@shop.example", recipients=11)
    with pytest.raises(ApprovalNeeded, match="More than 10 recipients"):
        desk.act(manage.schedule, draft, confirmed_recipients=11, by="bob@shop.example")
    change(desk, draft, name="Other")
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.schedule, draft, confirmed_recipients=11)
    desk.act(approve, draft, by="bob@shop.example", recipients=11)
    assert desk.act(manage.schedule, draft, confirmed_recipients=11).state == "scheduled"
    few = desk.draft()
    assert desk.act(manage.schedule, few, confirmed_recipients=10).state == "scheduled"


def test_the_limit_holds_with_the_margin_on_top(desk):
    limit(desk, 10)
    draft = desk.draft(margin_percent=100)
    with pytest.raises(ApprovalNeeded, match="Up to 20 customers may get the text"):
        desk.act(manage.schedule, draft, confirmed_recipients=10)
    approved = desk.act(approve, draft, by="bob@shop.example", recipients=9)
    assert approved.approved_recipients == 18
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.schedule, draft, confirmed_recipients=10)
    assert desk.act(manage.schedule, draft, confirmed_recipients=9).state == "scheduled"


def test_above_a_cost_another_person_approves(desk):
    limit(desk, EUR=100)
    draft = desk.draft()
    with pytest.raises(ApprovalNeeded, match=r"A cost above 100.00 EUR needs"):
        desk.act(manage.schedule, draft, confirmed_recipients=1, confirmed_cost={"EUR": Decimal("95.24")})
    with pytest.raises(ApprovalNeeded, match="An unknown cost needs"):
        desk.act(manage.schedule, draft, confirmed_recipients=1)
    desk.act(approve, draft, by="bob@shop.example", recipients=1)
    with pytest.raises(ApprovalNeeded, match="A cost above"):
        desk.act(manage.schedule, draft, confirmed_recipients=1, confirmed_cost={"EUR": Decimal("95.24")})
    assert desk.act(manage.schedule, draft, confirmed_recipients=1).state == "scheduled"
    cheap = desk.draft()
    cost = {"EUR": Decimal("95.23"), "CHF": Decimal(900)}
    assert desk.act(manage.schedule, cheap, confirmed_recipients=1, confirmed_cost=cost).state == "scheduled"


def test_an_approval_covers_the_audience_that_was_approved(desk):
    """The segment grows from 5 to 19 customers after the approval."""
    limit(desk, 4)
    desk.crowd(5, tier="gold")
    desk.crowd(14, tier="silver")
    gold = desk.segment(REACHABLE, GOLD, name="Gold")
    outer = desk.segment({"type": "segment", "id": gold}, name="Outer")
    draft = desk.draft(segment=outer)
    desk.act(approve, draft, by="bob@shop.example", recipients=5)
    change_segment(desk, gold, REACHABLE)
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.schedule, draft, confirmed_recipients=5)
    desk.act(approve, draft, by="bob@shop.example", recipients=5)
    desk.act(manage.schedule, draft, confirmed_recipients=5, is_now=True)
    desk.start()
    row = desk.load(draft).row
    assert (row.state, read_question(row.question).recipients) == ("paused", 19)
    with pytest.raises(ApprovalNeeded, match="Up to 19 customers"):
        desk.act(manage.resume, draft, shown=read_question(row.question))
    desk.act(manage.resume, draft, by="bob@shop.example", shown=read_question(row.question))
    desk.start()
    desk.work()
    assert desk.outcomes(draft) == {"sent": 19}


def test_a_segment_that_changes_after_the_confirmation_asks_another_person(desk):
    """Its audience has as many customers as before, but others."""
    limit(desk, 2)
    desk.crowd(3, tier="gold")
    desk.crowd(3, tier="silver")
    tier = desk.segment(REACHABLE, GOLD, name="Tier")
    draft = desk.draft(segment=tier)
    desk.act(approve, draft, by="bob@shop.example", recipients=3)
    desk.act(manage.schedule, draft, confirmed_recipients=3, is_now=True)
    change_segment(desk, tier, REACHABLE, {**GOLD, "value": "silver"}, by="bob@shop.example")
    desk.start()
    row = desk.load(draft).row
    assert (row.state, read_question(row.question).recipients) == ("paused", 3)
    assert "need the approval of another person" in row.reason
    # Who wrote the campaign, who changed the segment since the approval, and another person.
    for by in ("ann@shop.example", "bob@shop.example"):
        with pytest.raises(ApprovalNeeded):
            desk.act(manage.resume, draft, by=by, shown=read_question(row.question))
    desk.act(manage.resume, draft, by="carl@shop.example", shown=read_question(row.question))
    desk.start()
    assert desk.load(draft).row.frozen_at is not None


def test_the_counted_cost_is_judged_when_the_audience_is_fixed(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, prices={"FR": Price(Decimal("0.05"), "EUR")}))
    desk.crowd(4)
    campaign = desk.draft()
    desk.act(manage.schedule, campaign, confirmed_recipients=4, is_now=True)
    # Without a confirmed cost, it is not compared with one; the limit came after the confirmation.
    limit(desk, EUR="0.19")
    desk.start()
    row = desk.load(campaign).row
    assert (row.state, row.reason) == (
        "paused",
        "The texts may cost up to 0.20 EUR. A cost above 0.19 EUR needs the approval of another person.",
    )


def test_a_cost_without_a_price_is_unknown_when_the_audience_is_fixed(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, prices={"DE": Price(Decimal("0.05"), "EUR")}))
    desk.crowd(4)
    limit(desk, EUR=100)
    campaign = desk.draft()
    cost = {"EUR": Decimal(1)}
    desk.act(manage.schedule, campaign, confirmed_recipients=4, confirmed_cost=cost, is_now=True)
    desk.start()
    row = desk.load(campaign).row
    assert (row.state, "An unknown cost needs the approval" in (row.reason or "")) == ("paused", True)
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.resume, campaign, shown=read_question(row.question))
    resumed = desk.act(manage.resume, campaign, by="bob@shop.example", shown=read_question(row.question))
    assert (resumed.confirmed_cost, desk.load(campaign).row.approved_cost) == (None, None)
    desk.start()
    assert desk.load(campaign).row.frozen_at is not None


def test_a_limit_holds_when_a_paused_campaign_is_resumed(desk):
    draft = desk.draft(schedule={"start": "at", "at": "2099-01-01T10:00:00Z"})
    desk.act(manage.schedule, draft, confirmed_recipients=19)
    desk.act(manage.pause, draft)
    limit(desk, 10)
    for by in ("ann@shop.example", "bob@shop.example"):
        with pytest.raises(ApprovalNeeded):
            desk.act(manage.resume, draft, by=by)
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.resume, draft, by="bob@shop.example", confirmed_recipients=11)
    desk.act(approve, draft, by="bob@shop.example", recipients=19)
    assert desk.act(manage.resume, draft).state == "scheduled"


def test_a_limit_that_is_newer_than_the_fixed_audience_holds_when_the_campaign_is_resumed(desk):
    desk.crowd(3)
    campaign = desk.send(recipients=3)
    assert desk.load(campaign).row.frozen_at is not None
    desk.act(manage.pause, campaign)
    limit(desk, 2)
    for by in ("ann@shop.example", COMMAND_LINE):
        with pytest.raises(ApprovalNeeded, match="Up to 3 customers may get the text"):
            desk.act(manage.resume, campaign, by=by)
    desk.act(manage.resume, campaign, by="bob@shop.example")
    row = desk.act(manage.pause, campaign)
    assert (row.approved_by, row.approved_recipients, row.confirmed_by) == ("bob@shop.example", 3, "ann@shop.example")
    # What was approved is not asked again, and a segment changes nothing for a fixed audience.
    change_segment(desk, desk.reachable, GOLD)
    desk.act(manage.resume, campaign)
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 3}


def test_a_pause_changes_nothing_so_the_writer_approves_none_of_their_own(desk):
    limit(desk, 10)
    draft = desk.draft(schedule={"start": "at", "at": "2099-01-01T10:00:00Z"})
    desk.act(approve, draft, by="bob@shop.example", recipients=19)
    desk.act(manage.schedule, draft, confirmed_recipients=19)
    desk.act(manage.pause, draft, by="bob@shop.example")
    with pytest.raises(NotPossible, match="Another person"):
        desk.act(approve, draft, recipients=19)
    desk.act(approve, draft, by="bob@shop.example", recipients=19)


def test_no_one_who_ever_changed_the_campaign_approves_it(desk):
    limit(desk, 10)
    draft = desk.draft()
    change(desk, draft, by="bob@shop.example", name="Other")
    change(desk, draft, by="carl@shop.example", name="Third")
    for by in ("ann@shop.example", "bob@shop.example", "carl@shop.example", None, f"{COMMAND_LINE} (root)"):
        with pytest.raises(NotPossible):
            desk.act(approve, draft, by=by, recipients=11)
    assert desk.load(draft).row.changed_by == ["ann@shop.example", "bob@shop.example", "carl@shop.example"]
    desk.act(approve, draft, by="dora@shop.example", recipients=11)


def test_who_changed_a_segment_within_a_segment_does_not_approve(desk):
    limit(desk, 10)
    inner = desk.segment(REACHABLE, name="Inner")
    outer = desk.segment({"type": "segment", "id": inner}, name="Outer")
    draft = desk.draft(segment=outer)
    change_segment(desk, inner, REACHABLE, by="bob@shop.example")
    with pytest.raises(NotPossible, match="or its segments"):
        desk.act(approve, draft, by="bob@shop.example", recipients=11)
    desk.act(approve, draft, by="carl@shop.example", recipients=11)
    # Their change is approved by now.
    desk.act(approve, draft, by="bob@shop.example", recipients=11)


def test_who_changed_a_segment_that_joined_after_an_approval_does_not_approve(desk):
    """Bob changed it before the approval, which was about other segments."""
    limit(desk, 10)
    draft, joining = desk.draft(), desk.segment(REACHABLE, name="Joining")
    change_segment(desk, joining, REACHABLE, GOLD, by="bob@shop.example")
    desk.act(approve, draft, by="carl@shop.example", recipients=11)
    change(desk, draft, segment=joining)
    with pytest.raises(NotPossible, match="or its segments"):
        desk.act(approve, draft, by="bob@shop.example", recipients=11)
    desk.act(approve, draft, by="carl@shop.example", recipients=11)


def test_a_change_that_was_saved_after_an_approval_but_began_before_it_is_known(desk):
    limit(desk, 10)
    draft = desk.draft()
    desk.act(approve, draft, by="carl@shop.example", recipients=11)
    change_segment(desk, desk.reachable, REACHABLE, by="bob@shop.example")
    desk.alter("UPDATE segment_versions SET created_at = now() - interval '1 min' WHERE organization_id = %s")
    with pytest.raises(NotPossible, match="or its segments"):
        desk.act(approve, draft, by="bob@shop.example", recipients=11)


def test_sending_now_what_was_approved_for_a_later_time_is_a_change(desk):
    limit(desk, 10)
    draft = desk.draft(schedule={"start": "at", "at": "2099-01-01T10:00:00Z"})
    desk.act(approve, draft, by="bob@shop.example", recipients=11)
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.schedule, draft, by="carl@shop.example", confirmed_recipients=11, is_now=True)
    few = desk.act(manage.schedule, draft, by="carl@shop.example", confirmed_recipients=3, is_now=True)
    assert (few.revision, desk.load(draft).row.changed_by) == (2, ["ann@shop.example", "carl@shop.example"])


def test_what_an_older_server_changed_names_its_writer(desk):
    """It leaves `changed_by` as it is, and may sign a segment with the name of the member."""
    ann, bob = "ann@shop.example", "bob@shop.example"
    created, edited = desk.draft(), desk.draft()
    desk.alter("UPDATE campaigns SET changed_by = '{}' WHERE organization_id = %s AND id = %s", created)
    by_bob = "UPDATE campaigns SET updated_by = 'bob@shop.example', revision = 2 WHERE organization_id = %s AND id = %s"
    desk.alter(by_bob, edited)
    for draft, writer in ((created, ann), (edited, ann), (edited, bob)):
        with pytest.raises(NotPossible, match="who changed the campaign"):
            desk.act(approve, draft, by=writer, recipients=3)
    change(desk, edited, by="carl@shop.example", name="Other")
    assert set(desk.load(edited).row.changed_by) == {ann, bob, "carl@shop.example"}


def test_a_segment_signed_with_a_name_is_a_change_of_that_member(desk):
    tier = desk.segment(REACHABLE, name="Tier")
    draft = desk.draft(segment=tier)
    change_segment(desk, tier, REACHABLE, GOLD, by="Bob Martin")
    member = new_uuid()
    bob = f"bob-{member}@shop.example"
    desk.alter(
        """
        WITH new AS (SELECT %s::uuid AS organization_id, %s::uuid AS id, %s::text AS email), made AS (
            INSERT INTO users (id, email, name, created_at) SELECT id, email, 'Bob Martin', now() FROM new
        )
        INSERT INTO memberships (user_id, organization_id, role, created_at)
        SELECT id, organization_id, 'marketer', now() FROM new
        """,
        member,
        bob,
    )
    with pytest.raises(NotPossible, match="or its segments"):
        desk.act(approve, draft, by=bob, recipients=3)
    desk.act(approve, draft, by="carl@shop.example", recipients=3)


def test_only_an_address_is_a_person():
    assert is_person("ann@shop.example")
    commands = (COMMAND_LINE, f"{COMMAND_LINE} (root)", f"{COMMAND_LINE} (ann@shop.example)")
    assert not any(map(is_person, ("root", "", *commands)))


def test_an_approval_is_of_what_the_page_showed(desk):
    draft = desk.draft()
    with pytest.raises(EtagMismatch):
        desk.act(approve, draft, by="bob@shop.example", recipients=11, etag="old")
    with pytest.raises(NotPossible, match="amount"):
        desk.act(approve, draft, by="bob@shop.example", recipients=11, cost={"EUR": Decimal("NaN")})


def test_who_answers_a_question_confirms_its_numbers(desk):
    """The approver confirmed fewer recipients than the limit; then another person answers within the approval."""
    limit(desk, 2)
    desk.crowd(3)
    draft = desk.draft()
    desk.act(manage.schedule, draft, by="bob@shop.example", confirmed_recipients=1, is_now=True)
    desk.start()
    desk.act(approve, draft, by="bob@shop.example", recipients=3)
    question = read_question(desk.load(draft).row.question)
    assert desk.act(manage.resume, draft, shown=question).confirmed_by == "ann@shop.example"
    desk.start()
    row = desk.load(draft).row
    assert (row.reason, row.frozen_at is not None) == (None, True)


def test_an_answer_that_approves_is_a_second_person_beside_who_confirmed(desk):
    limit(desk, 2)
    desk.crowd(3)
    draft = desk.draft()
    desk.act(manage.schedule, draft, confirmed_recipients=1, is_now=True)
    desk.start()
    question = read_question(desk.load(draft).row.question)
    resumed = desk.act(manage.resume, draft, by="bob@shop.example", shown=question)
    assert (resumed.confirmed_by, desk.load(draft).row.approved_by) == ("ann@shop.example", "bob@shop.example")
    desk.start()
    assert desk.load(draft).row.frozen_at is not None


def test_an_answer_approves_only_the_segments_that_were_counted(desk):
    """The segment holds as many customers after the question as before, but others."""
    limit(desk, 2)
    desk.crowd(3, tier="gold")
    desk.crowd(3, tier="silver")
    tier = desk.segment(REACHABLE, GOLD, name="Tier")
    draft = desk.draft(segment=tier)
    desk.act(manage.schedule, draft, confirmed_recipients=1, is_now=True)
    desk.start()
    question = read_question(desk.load(draft).row.question)
    change_segment(desk, tier, REACHABLE, {**GOLD, "value": "silver"}, by="bob@shop.example")
    with pytest.raises(EtagMismatch):
        desk.act(manage.resume, draft, by="carl@shop.example", shown=question, etag=question.counted)
    with pytest.raises(ApprovalNeeded):
        desk.act(manage.resume, draft, by="carl@shop.example", shown=question)
    assert desk.load(draft).row.approved_by is None
    # After a review by another person the question can be answered.
    desk.act(approve, draft, by="carl@shop.example", recipients=3)
    desk.act(manage.resume, draft, shown=question)
    desk.start()
    assert desk.load(draft).row.frozen_at is not None
