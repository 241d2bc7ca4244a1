"""Formats the results of a run: as JSON, and as a table."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.crash.trial import Result


def summary(
    results: Sequence[Result], kills: Counter[str], *, seed: int, commit: str, seconds: float
) -> dict[str, Any]:
    answers: Counter[str] = Counter()
    for result in results:
        answers.update(result.answers)
    return {
        "seed": seed,
        "commit": commit,
        "seconds": round(seconds),
        "trials": len(results),
        "skipped": sum(bool(result.skipped) for result in results),
        "happened": sum(result.happened for result in results),
        "violations": sum(len(result.violations) for result in results),
        "kills": dict(sorted(kills.items())),
        "calls": sum(result.calls for result in results),
        "unknown": sum(result.lost for result in results) + answers["503"],
        "answers": dict(sorted(answers.items())),
        "texts": sum(result.texts for result in results),
        "events": sum(result.events for result in results),
        "erased": sum(result.erased for result in results),
        "walks": sum(result.walks for result in results),
        "slowest_recovery_s": max((result.recovery_s for result in results), default=0.0),
        "results": [result.as_json() for result in results],
    }


def show(results: Sequence[Result], found: dict[str, Any], say: Callable[[str], None]) -> None:
    by_fault: dict[str, list[Result]] = {}
    for result in results:
        by_fault.setdefault(result.fault, []).append(result)
    width = max([len(name) for name in by_fault] + [5])
    say(f"\n{'fault':{width}}  trials  happened  calls  unknown  slowest recovery  violations")
    for name, some in sorted(by_fault.items()):
        unknown = sum(it.lost + it.answers.get("503", 0) for it in some)
        say(
            f"{name:{width}}  {len(some):6}  {sum(it.happened for it in some):8}  {sum(it.calls for it in some):5}"
            f"  {unknown:7}  {max(it.recovery_s for it in some):14.2f} s  {sum(len(it.violations) for it in some):10}"
        )
    kills = ", ".join(f"{count} × {name}" for name, count in found["kills"].items())
    say(f"\n{found['trials']} trials in {found['seconds']} s: {found['calls']} calls, {found['texts']} texts,")
    say(f"{found['events']} webhooks, {found['erased']} erasures, {found['walks']} walks; {kills or 'no kills'}.")
    if found["skipped"]:
        say(f"{found['skipped']} were skipped: {next(it.skipped for it in results if it.skipped)}.")
    say(f"{found['violations']} violations." if found["violations"] else "No violation.")
