"""A fact enters a journey once and brings at most one text, however often it comes and whatever process is killed meanwhile."""

import os
import random

import pytest
from tests.journeys.fire import KINDS, play
from tests.support.server import running_server
from tests.support.tenant import new_tenant

# The full size: REGULARS_TEST_FACTS=1000 REGULARS_TEST_KILLS=10.
FACTS = int(os.environ.get("REGULARS_TEST_FACTS", "40"))
KILLS = int(os.environ.get("REGULARS_TEST_KILLS", "2"))


@pytest.mark.timeout(3000)
def test_one_run_and_at_most_one_text_for_a_fact_however_often_it_is_sent(database_url, tmp_path):
    seed = random.SystemRandom().randrange(10**6)
    tenant = new_tenant(database_url)
    with running_server(database_url, rate_limit_per_s="0") as server:
        report = play(server, database_url, tenant, facts=FACTS, kills=KILLS, seed=seed, folder=tmp_path)
    print(f"seed {seed}: {dict(report.texts)}, {report.arrived.total()} reached the provider, {report.imported}")  # noqa: T201  # shown with -s
    assert report.kills == KILLS
    for kind in KINDS:
        assert len(report.runs[kind]) == FACTS, (seed, kind)
        assert set(report.runs[kind].values()) == {1}, (seed, kind)
    assert report.outcomes == {"completed": len(KINDS) * FACTS}, seed
    assert max(report.arrived.values()) == 1, seed
    # What was on its way when its sender was killed is unknown; everything else has left.
    assert report.texts.total() == len(KINDS) * FACTS, seed
    assert report.texts["sent"] + report.texts["unknown"] == len(KINDS) * FACTS, seed
    assert report.arrived.total() >= report.texts["sent"], seed
