"""The step of a stored answer held the email address of a member of staff."""

import psycopg
from tests.support.tenant import new_tenant

from regulars.kit.ids import new_uuid
from regulars.kit.migrate import MIGRATIONS, run_outside_transaction, split_statements

FILE = MIGRATIONS / "0156_steps_without_authors.sql"
TEXT = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, body, parts, state, expires_at, created_at)
VALUES (%s, %s, %s, %s, %s, 'Hello', 1, 'sent', now(), now())
"""
REPLY = """
INSERT INTO replies (organization_id, id, provider, provider_id, number_hash, phone_number, body, meaning, decided,
                     decided_by, received_at)
VALUES (%s, %s, 'test', %s, 'x', '+33612345678', 'Hi', 'other', %s, %s, now())
"""


def test_the_step_of_an_answer_becomes_an_id_and_the_text_keeps_its_author(database_url):
    organization = new_tenant(database_url).organization_id
    decided, undecided, of_today, other = (new_uuid() for _ in range(4))
    once = str(new_uuid())
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(REPLY, (organization, decided, decided, "withdrew", "bob@shop.example"))
        connection.execute(REPLY, (organization, undecided, undecided, None, None))
        ann, bob = new_uuid(), new_uuid()
        emails = {ann: f"ann.{ann}@shop.example", bob: f"bob.{bob}@shop.example"}
        for user, email in emails.items():
            connection.execute(
                "INSERT INTO users (id, email, name, created_at) VALUES (%s, %s, 'A member', now())", (user, email)
            )
        ids = {name: new_uuid() for name in ("first", "second", "third", "new", "journey")}
        for name, kind, origin, step in (
            ("first", "answer", decided, f"{emails[ann]} 2026-10-01T10:00:00+00:00"),
            ("second", "answer", undecided, f"{emails[bob]} 2026-10-01T10:00:00+00:00"),
            ("third", "answer", undecided, "removed@shop.example 2026-10-02T10:00:00+00:00"),
            ("new", "answer", of_today, once),
            ("journey", "journey", other, "step of a journey"),
        ):
            connection.execute(TEXT, (organization, ids[name], kind, origin, step))
        for _ in range(2):
            run_outside_transaction(database_url, FILE, FILE.read_bytes())
        steps = dict(connection.execute("SELECT id, step FROM texts WHERE organization_id = %s", (organization,)))
        authors = dict(
            connection.execute(
                "SELECT id, author_id FROM texts WHERE organization_id = %s AND author_id IS NOT NULL", (organization,)
            )
        )
    assert steps == {
        **{ids[name]: str(ids[name]) for name in ("first", "second", "third")},
        ids["new"]: once,
        ids["journey"]: "step of a journey",
    }
    assert authors == {ids["first"]: ann, ids["second"]: bob}


def test_statements_within_a_block_are_not_split():
    assert split_statements(b"A;\nDO $$ B;\nC; $$;\nD;\n") == [b"A", b"DO $$ B;\nC; $$", b"D", b""]
