"""Runs a sample of the trials of `bin/crash`, and the seeds that once found a bug."""

import json
from pathlib import Path

import pytest
from tests.crash import run, world
from tests.crash.faults import choose
from tests.crash.trial import run_trial

SAMPLE = (
    "write.committed:kill",
    "fact.taken:kill",
    "text.sent:kill",
    "delivery.answered:kill",
    "postmaster",
    "cut_commits",
    "shuffled",
)
# Found once: webhooks had the time of the worker's clock, and receivers refused them.
FOUND = {("clock", 5)}
PLANTED = {
    "answer_before_commit": ("write.before_commit:kill", "I1"),
    "unique_key_dropped": ("shuffled", "I5"),
    "gate_after_claim": ("withdrawals", "I7"),
    "fact_after_commit": ("write.committed:kill", "I3"),
}


# For a busy machine: a stuck process stays stuck for longer than this.
PATIENCE = 4.0


@pytest.fixture(scope="module")
def stage(place):
    with world.stage(place, servers=2) as opened:
        yield opened


@pytest.mark.timeout(600)
def test_nothing_is_lost_doubled_or_stuck(stage, tmp_path):
    with world.world_on(stage) as running:
        trials = [*((name, 100 + number) for number, name in enumerate(SAMPLE)), *sorted(FOUND)]
        results = [
            run_trial(running, choose(name)[0], seed=seed, folder=tmp_path, patience=PATIENCE) for name, seed in trials
        ]
    assert [(it.fault, it.seed, it.violations) for it in results if it.violations] == []
    # A loaded machine may not reach the failpoint in time.
    assert sum(it.happened for it in results) >= len(results) - 2
    assert all(it.calls > 10 for it in results)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found(stage, tmp_path, mistake):
    fault, invariant = PLANTED[mistake]
    with world.world_on(stage, planted_bug=mistake) as running:
        for seed in range(20):
            # A bug may keep the queues from ever becoming empty, so the trial waits only briefly.
            result = run_trial(running, choose(fault)[0], seed=seed, folder=tmp_path, patience=1.0)
            if any(it.startswith(invariant) for it in result.violations):
                first = json.loads(Path(result.history).read_text().splitlines()[0])
                assert first == {"t": first["t"], "event": "note", "seed": seed, "fault": fault, "servers": 2}
                return
    pytest.fail(f"{mistake} was not found; the last trial said {result.violations}")


def test_a_fault_that_does_not_exist_is_refused_with_the_list_of_those_that_do():
    with pytest.raises(SystemExit, match=r"There is no fault earthquake; there are .*postmaster"):
        run.main(["--only", "earthquake", "--trials", "1"])
