"""After the answer to a withdrawal nothing is sent, and nothing is sent twice, whatever process is killed meanwhile."""

import os
import random

import pytest
from tests.messaging.fire import play
from tests.support.server import running_server
from tests.support.tenant import new_tenant

TEXTS = int(os.environ.get("REGULARS_TEST_TEXTS", "300"))
EACH = int(os.environ.get("REGULARS_TEST_WITHDRAWALS", "6"))
KILLS = int(os.environ.get("REGULARS_TEST_KILLS", "2"))


@pytest.mark.timeout(600)
def test_nothing_is_sent_after_a_withdrawal_was_answered_and_nothing_twice(database_url):
    seed = random.SystemRandom().randrange(10**6)
    tenant = new_tenant(database_url)
    with running_server(database_url, rate_limit_per_s="0") as server:
        report = play(server, database_url, tenant, texts=TEXTS, each=EACH, kills=KILLS, seed=seed)
    print(f"seed {seed}: {dict(report.states)}, {len(report.texts())} reached the provider, {report.met()} met")  # noqa: T201  # shown with -s
    assert len(report.answered) == 3 * EACH
    assert report.late() == [], seed
    assert report.twice() == [], seed
    # Every text is accounted for: those of erased people are gone, or were on their way when they were erased.
    assert len(report.texts()) >= TEXTS - 3 * EACH - report.states["unknown"], seed
    assert report.states["skipped"] <= 3 * EACH, seed
