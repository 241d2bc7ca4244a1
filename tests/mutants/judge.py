"""Runs the planned tests on a mutant in a slot, and says what became of it."""

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.mutants import chosen
from tests.mutants.choose import Mutant, apply
from tests.mutants.plan import is_daily
from tests.mutants.reach import Reach
from tests.mutants.slot import OUT_OF_TIME, Slot

# For the imports and servers of a run on a busy machine.
START_SECONDS_MAX: Final = 60.0
# How much longer than without a mutant a test may take: a mutant that waits for ever is noticed by that.
TEST_SECONDS_MAX: Final = 20.0
TIMES_SLOWER_MAX: Final = 5
# Of a run that could not import the package or the tests.
START: Final = "the start of the tests"


class Outcome(StrEnum):
    DAILY = "killed by a daily test"
    WHOLE = "killed by another test"
    SURVIVED = "survived"
    UNREACHED = "no test reaches it"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    mutant: Mutant
    outcome: Outcome
    # The test that failed, and whether it ran out of time.
    killer: str = ""
    timed_out: bool = False
    tests: int = 0


def judge(slot: Slot, mutant: Mutant, number: int, runs: Sequence[Sequence[Reach]], *, is_whole: bool) -> Judgement:
    """`number` is another one for each mutant of a slot; `is_whole`, whether the runs have all tests that reach it."""
    path = slot.root / mutant.path
    source, stat = path.read_text(), path.stat()
    path.write_text(apply(mutant, source))
    # Python finds stale bytecode by the time of the source, in seconds, and by its size.
    os.utime(path, (stat.st_atime, stat.st_mtime - number - 1))
    try:
        for run in runs:
            if (killer := run_tests(slot, run)) is not None:
                test, timed_out = killer
                outcome = Outcome.DAILY if test == START or is_daily(test) else Outcome.WHOLE
                return Judgement(mutant, outcome, test, timed_out, sum(map(len, runs)))
    finally:
        path.write_text(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    if not runs and is_whole:
        return Judgement(mutant, Outcome.UNREACHED)
    return Judgement(mutant, Outcome.SURVIVED if is_whole else Outcome.UNDECIDED, tests=sum(map(len, runs)))


def find_unreliable(slot: Slot, killers: Collection[Reach]) -> set[str]:
    """The tests among these that fail without a mutant."""
    left, unreliable = list(killers), set[str]()
    while left and (failed := run_tests(slot, left)) is not None:
        unreliable.add(failed[0])
        names = [each.test for each in left]
        if failed[0] not in names:
            raise RuntimeError(f"The tests do not start without a mutant; see {slot.log}")
        left = left[names.index(failed[0]) + 1 :]
    return unreliable


def run_tests(slot: Slot, tests: Sequence[Reach]) -> tuple[str, bool] | None:
    """Returns the first test that fails, and whether it ran out of time."""
    folder = slot.root.parent
    failure = folder / "failure.jsonl"
    failure.unlink(missing_ok=True)
    limits = [(test.test, TEST_SECONDS_MAX + TIMES_SLOWER_MAX * test.seconds) for test in tests]
    (folder / "chosen.json").write_text(json.dumps(limits))
    code = slot.pytest(
        ["-x", "-p", "tests.mutants.chosen", *dict.fromkeys(test.file for test in tests)],
        seconds_max=START_SECONDS_MAX + TIMES_SLOWER_MAX * sum(test.seconds for test in tests),
        variables={
            chosen.CHOSEN_VARIABLE: str(folder / "chosen.json"),
            chosen.FAILURE_VARIABLE: str(failure),
        },
    )
    if failure.exists():
        first = json.loads(failure.read_text().splitlines()[0])
        return first["test"], first["timed_out"]
    # No test ran (5) where the mutant has taken the test's parameters away.
    return None if code in (0, 5) else (START, code == OUT_OF_TIME)
