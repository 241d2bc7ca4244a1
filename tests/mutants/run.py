"""Changes random lines of the package, one at a time, and runs the tests that reach them: do they notice?

    bin/mutants                                 300 changes, in at most an hour
    bin/mutants --rooms stores --count 10       ten changes of one room
    bin/mutants --only 1a2b3c4d5e --seed 7      one change of another sample again

It works on copies of the last commit, in `build/mutants`. The first run on a commit's source runs all tests once, to
find out which lines each of them reaches.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Final

from tests.mutants import reach, report
from tests.mutants.choose import Mutant, choose
from tests.mutants.judge import START, Judgement, Outcome, find_unreliable, judge
from tests.mutants.plan import find_probes, plan_tests
from tests.mutants.probes import number_probes
from tests.mutants.slot import ROOT, Slot, for_each, new_slot

FOLDER: Final = ROOT / "build" / "mutants"
SEED: Final = 43
UNRELIABLE: Final = "fails without a mutant as well: "


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    # A run that is ended early removes its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        slots = [stack.enter_context(new_slot(FOLDER / f"slot-{number}")) for number in range(options.slots)]
        stored = reach.stored_in(FOLDER)
        reach.collect(slots, stored, say, folders=options.tests)
        mutants = choose(slots[0].root, seed=options.seed, count=options.count, rooms=options.rooms)
        if options.only:
            mutants = [mutant for mutant in mutants if mutant.key in options.only]
        if mutants:
            judgements = judge_all(slots, mutants, options)
            (FOLDER / "results.json").write_text(json.dumps([asdict(each) for each in judgements], indent=1))
            table = report.show(judgements, report.read_equal(report.EQUAL.read_text()))
            sys.stdout.write("\n".join([*table, ""]))
    return 0


def judge_all(slots: Sequence[Slot], mutants: Sequence[Mutant], options: argparse.Namespace) -> list[Judgement]:
    """Judges mutants in all slots until the time is over, then the tests that killed them."""
    probes = number_probes(slots[0].root)
    probes_of = {mutant.key: find_probes(mutant, probes) for mutant in mutants}
    tests, imported = reach.load(reach.stored_in(FOLDER), set().union(*probes_of.values()))
    until = time.monotonic() + 60 * options.minutes
    judgements: list[Judgement] = []

    def judge_one(slot: Slot, numbered: tuple[int, Mutant]) -> None:
        number, mutant = numbered
        started = time.monotonic()
        if started > until:
            return
        runs, left_out = plan_tests(mutant, probes_of[mutant.key], tests, imported, seconds_max=options.test_seconds)
        judgement = judge(slot, mutant, number, runs, is_whole=not left_out)
        judgements.append(judgement)
        place, seconds = f"{mutant.path}:{mutant.line}", time.monotonic() - started
        say(
            f"{len(judgements)}/{len(mutants)} {mutant.key} {place} {judgement.outcome} {judgement.killer} {seconds:.0f} s"
        )

    for_each(enumerate(mutants), slots, judge_one)
    if len(judgements) < len(mutants):
        say(f"{len(mutants) - len(judgements)} mutants had no time")
    killers = {each.killer for each in judgements} - {"", START}
    unreliable = find_unreliable(slots[0], [test for test in tests if test.test in killers])
    return [
        replace(each, outcome=Outcome.UNDECIDED, killer=UNRELIABLE + each.killer) if each.killer in unreliable else each
        for each in judgements
    ]


def say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bin/mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300, help="mutants; 0 only collects which lines the tests reach")
    parser.add_argument("--seed", type=int, default=SEED, help="of the choice of mutants")
    parser.add_argument("--rooms", nargs="+", default=[], help="only mutants of these rooms")
    parser.add_argument("--tests", nargs="+", default=[], help="collect what tests of these folders reach, not of all")
    parser.add_argument("--only", nargs="+", default=[], help="only the mutants with these keys")
    parser.add_argument("--slots", type=int, default=2, help="mutants at a time")
    parser.add_argument("--minutes", type=float, default=60, help="after them no further mutant starts")
    parser.add_argument("--test-seconds", type=float, default=60, help="of tests that run on one mutant at most")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
