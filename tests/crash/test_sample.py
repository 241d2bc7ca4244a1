"""Runs a sample of the trials of `bin/crash`, and the seeds that once found a bug."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.crash import run, world
from tests.crash.faults import choose
from tests.crash.trial import Result, run_trial
from tests.crash.world import Cluster

# Each with its seed. Seed 5 of `clock` found that webhooks had the time of the worker's clock, and receivers refused them.
POSTMASTER = ("write.committed:kill+postmaster", 100)
OTHERS = (
    ("fact.taken:kill+text.sent:kill+delivery.answered:kill", 101),
    ("cut_commits+shuffled", 102),
    ("clock", 5),
)
PLANTED = {
    "answer_before_commit": ("write.before_commit:kill", "I1"),
    "unique_key_dropped": ("shuffled", "I5"),
    "gate_after_claim": ("withdrawals", "I7"),
    "fact_after_commit": ("write.committed:kill", "I3"),
}
SEEDS = range(20)
# For a busy machine: a stuck process stays stuck for longer than this.
PATIENCE = 4.0
# The tills of a sample do not use all of the processor.
PAUSE_S = 0.02


@pytest.mark.timeout(600)
def test_nothing_is_lost_doubled_or_stuck(place, tmp_path):
    assert find_violations(place, tmp_path, POSTMASTER) == []


@pytest.mark.timeout(600)
def test_nothing_is_lost_by_other_faults(place, tmp_path):
    """Side by side, because none of them takes the database from the others."""
    with ThreadPoolExecutor(len(OTHERS)) as pool:
        found = pool.map(partial(find_violations, place, tmp_path), OTHERS)
        assert dict(zip(OTHERS, found, strict=True)) == {sample: [] for sample in OTHERS}


def find_violations(place: Cluster, folder: Path, sample: tuple[str, int]) -> list[str]:
    """Runs a trial; another one if it ended before its last fault, as it may on a busy machine."""
    fault, seed = sample
    with world.stage(place, servers=2) as stage:
        for attempt in range(3):
            histories = folder / f"{seed}-{attempt}"
            histories.mkdir()
            with world.world_on(stage) as running:
                result = run_trial(
                    running,
                    choose(fault)[0],
                    seed=seed + attempt,
                    folder=histories,
                    patience=PATIENCE,
                    pause_s=PAUSE_S,
                )
            if result.violations or result.happened:
                return result.violations if result.calls > 10 else ["hardly anything was called"]
    return ["the fault did not happen"]


@pytest.mark.timeout(600)
def test_planted_mistakes_are_found(place, tmp_path):
    with ThreadPoolExecutor(len(PLANTED)) as pool:
        found = dict(zip(PLANTED, pool.map(partial(find_mistake, place, tmp_path), PLANTED), strict=True))
    assert {mistake: it.violations for mistake, it in found.items() if not is_found(mistake, it)} == {}
    for mistake, it in found.items():
        first = json.loads(Path(it.history).read_text().splitlines()[0])
        assert first == {"t": first["t"], "event": "note", "seed": it.seed, "fault": PLANTED[mistake][0], "servers": 2}


def find_mistake(place: Cluster, folder: Path, mistake: str) -> Result:
    """Runs trials until one finds the mistake; returns the last one."""
    fault, _ = PLANTED[mistake]
    histories = folder / mistake
    histories.mkdir()
    with world.world(place, servers=2, planted_bug=mistake) as running:
        for seed in SEEDS:
            # A bug may keep the queues from ever becoming empty, so the trial waits only briefly.
            result = run_trial(running, choose(fault)[0], seed=seed, folder=histories, patience=1.0, pause_s=PAUSE_S)
            if is_found(mistake, result):
                break
    return result


def is_found(mistake: str, result: Result) -> bool:
    _, invariant = PLANTED[mistake]
    return any(it.startswith(invariant) for it in result.violations)


def test_a_fault_that_does_not_exist_is_refused_with_the_list_of_those_that_do():
    with pytest.raises(SystemExit, match=r"There is no fault earthquake; there are .*postmaster"):
        run.main(["--only", "earthquake", "--trials", "1"])
