"""Tests that the check finds data of an erased customer in every table."""

import json
import time
from uuid import uuid4

import psycopg
import pytest
from tests.crash.erased_customers import Person, check_gone, check_logged
from tests.crash.external import Arrival
from tests.crash.shops import open_shops

LEFT = {
    "a name": "UPDATE profiles SET first_name = %(word)s WHERE organization_id = %(organization)s",
    "a number": "UPDATE profiles SET phone_number = %(number)s WHERE organization_id = %(organization)s",
    "bytes": "INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)"
    " VALUES (%(organization)s, 'k', '\\x00', 200, convert_to(%(word)s, 'UTF8'), now())",
}


@pytest.fixture
def shop(database_url):
    [opened] = open_shops(database_url, ["1ea7"], hooks_url="http://127.0.0.1:9", public_url="http://127.0.0.1:9")
    return opened


def test_what_is_left_of_an_erased_customer_is_found(database_url, shop):
    person = Person(shop, 3)
    about = {"word": person.word, "number": person.phone_number, "organization": shop.organization_id}
    check_gone(database_url, shop, {person: 0.0}, [])
    for statement in LEFT.values():
        with psycopg.connect(database_url) as connection:
            connection.execute(statement, about)
            connection.commit()
            with pytest.raises(AssertionError, match=r"GONE: .* still hold an erased customer"):
                check_gone(database_url, shop, {person: 0.0}, [])
            connection.execute("UPDATE profiles SET first_name = NULL, phone_number = NULL")
            connection.execute("DELETE FROM idempotency_keys")


def test_a_text_that_leaves_after_the_answer_is_found(database_url, shop):
    person = Person(shop, 3)
    arrival = Arrival(time.monotonic(), "org", "text", person.phone_number, "Hello", is_taken=True)
    check_gone(database_url, shop, {person: arrival.at + 1}, [arrival])
    with pytest.raises(AssertionError, match="GONE: texts left"):
        check_gone(database_url, shop, {person: arrival.at - 1}, [arrival])


def test_an_erasure_that_no_log_has_is_found(database_url, shop, tmp_path):
    check_logged(database_url, shop, tmp_path)
    profile_id = uuid4()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO erasures VALUES (%s, %s, '{}', now())", (shop.organization_id, profile_id))
    with pytest.raises(AssertionError, match="LOG: 1 erasures"):
        check_logged(database_url, shop, tmp_path)
    entry = {"entry": str(uuid4()), "organization_id": str(shop.organization_id), "profile_id": str(profile_id)}
    line = json.dumps({**entry, "number_hashes": [], "erased_at": "2026-01-05T10:00:00Z"})
    (tmp_path / "erasures.log").write_text(f"{line}\n")
    check_logged(database_url, shop, tmp_path)
