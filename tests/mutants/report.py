"""The tables of a run: outcomes by room, and the mutants that no test noticed."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.mutants.judge import Judgement, Outcome

EQUAL: Final = Path(__file__).parent / "equal.txt"


def read_equal(text: str) -> dict[str, str]:
    """Mutants that do the same as the code, with the reason, by key. A line is `key file: reason`."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.split()[0]: line.partition(": ")[2] for line in lines}


def show(judgements: Sequence[Judgement], equal: dict[str, str]) -> Iterator[str]:
    by_room: dict[str, Counter[str]] = defaultdict(Counter)
    for each in judgements:
        by_room[each.mutant.room][_column(each, equal)] += 1
    total = sum(by_room.values(), Counter())
    columns = [*Outcome, "equal"]
    yield f"{'room':<14}{'mutants':>9}" + "".join(f"{column:>{len(column) + 3}}" for column in columns)
    for room, counts in [*sorted(by_room.items()), ("all", total)]:
        figures = "".join(f"{counts[column]:>{len(column) + 3}}" for column in columns)
        yield f"{room:<14}{counts.total():>9}{figures}"
    yield ""
    by_any = total[Outcome.DAILY] + total[Outcome.WHOLE]
    decided = by_any + total[Outcome.SURVIVED] + total[Outcome.UNREACHED]
    yield f"All tests kill {_percent(by_any, decided)} of {decided} decided mutants that are not equal."
    yield f"The daily tests kill {_percent(total[Outcome.DAILY], by_any)} of those {by_any}."
    yield f"{sum(each.timed_out for each in judgements)} were killed by a time limit."
    for outcome in (Outcome.SURVIVED, Outcome.UNREACHED, Outcome.UNDECIDED, Outcome.WHOLE):
        found = [each for each in judgements if _column(each, equal) == outcome]
        if found:
            yield f"\n{outcome}:"
        for each in found:
            yield from _show_mutant(each)


def _column(each: Judgement, equal: dict[str, str]) -> str:
    is_killed = each.outcome in (Outcome.DAILY, Outcome.WHOLE)
    return "equal" if each.mutant.key in equal and not is_killed else each.outcome


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _show_mutant(each: Judgement) -> Iterator[str]:
    by = f"; {each.killer}" if each.killer else f"; {each.tests} tests ran"
    yield f"{each.mutant.key} {each.mutant.path}:{each.mutant.line} ({each.mutant.kind}{by})"
    yield f"    - {each.mutant.before.strip()}"
    yield f"    + {each.mutant.after.strip()}"
