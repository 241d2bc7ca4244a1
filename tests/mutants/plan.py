"""Which tests run on a mutant, in which order: those that probably notice it first, so that most mutants end early."""

from collections.abc import Collection, Sequence
from typing import Final

from tests.mutants.choose import Mutant
from tests.mutants.probes import ProbesByLine
from tests.mutants.reach import Reach
from tests.not_daily import NOT_DAILY
from tests.support.durations import find_reason

# They read the source, and run none of it.
TESTS_OF_SQL: Final = "tests/architecture/test_statements.py"
# A first run of pytest with a few tests is short; a second one has the others.
FIRST_SECONDS_MAX: Final = 6.0
FIRST_FILES_MAX: Final = 6
# Every test costs something beside its own time.
SECONDS_MIN: Final = 0.02
OTHER_ROOM_WEIGHT: Final = 10


def is_daily(test: str) -> bool:
    return find_reason(test, NOT_DAILY) is None


def find_probes(mutant: Mutant, probes: ProbesByLine) -> set[int]:
    by_line = probes[mutant.path]
    return {by_line[line] for line in mutant.reached_from if line in by_line}


def plan_tests(
    mutant: Mutant, reached: set[int], tests: Collection[Reach], imported: frozenset[int], *, seconds_max: float
) -> tuple[list[list[Reach]], list[Reach]]:
    """The runs of tests that fit into the time, and the tests that do not.

    A constant that no function names, and a function that imports call, also have the tests of their room.
    """
    by_room = not reached or bool(reached & imported)
    wanted = [
        test
        for test in tests
        if test.probes & reached
        or (by_room and _is_of_room(test, mutant))
        or (mutant.kind == "removed organization" and test.file == TESTS_OF_SQL)
    ]
    wanted.sort(key=lambda test: (not is_daily(test.test), _weight(test, mutant), test.test))
    runs: list[list[Reach]] = [[], []]
    seconds = 0.0
    for number, test in enumerate(wanted):
        seconds += max(test.seconds, SECONDS_MIN)
        if number and seconds > seconds_max:
            return [_by_file(run) for run in runs if run], wanted[number:]
        is_first = (
            not runs[1] and seconds <= FIRST_SECONDS_MAX and len({each.file for each in runs[0]}) < FIRST_FILES_MAX
        )
        runs[0 if is_first or not runs[0] else 1].append(test)
    return [_by_file(run) for run in runs if run], []


def _is_of_room(test: Reach, mutant: Mutant) -> bool:
    return mutant.room.strip("()") in test.test.partition("::")[0].split("/")


def _weight(test: Reach, mutant: Mutant) -> float:
    """Short tests that reach little besides the mutant, and tests of its room, are first."""
    weight = max(test.seconds, SECONDS_MIN) * max(test.total, 1)
    return weight if mutant.room in test.file else weight * OTHER_ROOM_WEIGHT


def _by_file(run: Sequence[Reach]) -> list[Reach]:
    """The daily tests of a file stay together, as they share fixtures."""
    files: dict[tuple[bool, str], list[Reach]] = {}
    for test in run:
        files.setdefault((not is_daily(test.test), test.file), []).append(test)
    return [
        test for is_late in (False, True) for (late, _file), group in files.items() if late is is_late for test in group
    ]
