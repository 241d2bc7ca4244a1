"""The step of an answer that a server of an earlier release stored holds the email address of a member of staff."""

from tests.support.drain_queues import drain_queues

from regulars.kit.ids import new_uuid
from regulars.work.due import find_due_organizations
from regulars.worker import NAMED_AUTHORS

TEXT = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, body, parts, state, expires_at, created_at)
VALUES (%s, %s, %s, %s, %s, 'Hello', 1, 'sent', now(), now())
"""
WRITTEN_AT = "2026-10-01T10:00:00+00:00"


def add_user(desk, name):
    user, email = new_uuid(), f"{name}.{new_uuid()}@shop.example"
    desk.do(
        lambda tx: tx.execute(
            "INSERT INTO users (id, email, name, created_at) VALUES (%s, %s, 'A member', now())", (user, email)
        )
    )
    return user, email


def add_text(desk, kind, step):
    text_id = new_uuid()
    desk.alter(TEXT, text_id, kind, new_uuid(), step)
    return text_id


def is_due(desk):
    return desk.organization_id in desk.do(lambda tx: find_due_organizations(tx, NAMED_AUTHORS, after=None))


def test_the_worker_makes_the_step_of_an_answer_an_id_and_stores_its_author(desk):
    ann, ann_email = add_user(desk, "ann")
    bob, bob_email = add_user(desk, "bob")
    once = str(new_uuid())
    journey, new = add_text(desk, "journey", "step of a journey"), add_text(desk, "answer", once)
    assert not is_due(desk)
    by_ann, by_bob, by_removed = (
        add_text(desk, "answer", f"{email} {WRITTEN_AT}") for email in (ann_email, bob_email, "removed@shop.example")
    )
    assert is_due(desk)
    drain_queues(desk.database.url, desk.organization_id)
    assert not is_due(desk)
    found = {
        text_id: (step, author)
        for text_id, step, author in desk.sql("SELECT id, step, author_id FROM texts WHERE organization_id = %s")
    }
    assert found == {
        by_ann: (str(by_ann), ann),
        by_bob: (str(by_bob), bob),
        by_removed: (str(by_removed), None),
        new: (once, None),
        journey: ("step of a journey", None),
    }
