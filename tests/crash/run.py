"""Injects faults into the running system and proves from histories that nothing was lost, doubled or stuck.

    bin/crash --trials 30                     thirty faults of all kinds, two server processes
    bin/crash --trials 300 --only kill        kill -9 at every failpoint and at random
    bin/crash --trials 1 --seed 1234 --only postmaster --servers 1      one trial again
    bin/crash --only same_key                 ten thousand requests with one idempotency key
    bin/crash --only overload                 half a minute of five times the highest load
    bin/crash --only rate_limit               half a minute of five times the rate limit of a key
    bin/crash --only campaign                 a campaign of 20,000 while everything is killed until it has ended
    bin/crash --soak                          half an hour at a quarter of the highest load

The seed of a trial decides the traffic, the moment and the fault, but not the scheduling of the processes.
"""

import argparse
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.crash.campaign_kills import campaign_under_kills
from tests.crash.disks import CannotMountError, database_on, small_disk
from tests.crash.faults import Fault, choose
from tests.crash.many_clients import same_key
from tests.crash.overload import overload, rate_limit
from tests.crash.report import show, summary
from tests.crash.shops import Shop, open_shops
from tests.crash.soak import WINDOWS, SoakResult, soak
from tests.crash.soak import show as show_soak
from tests.crash.trial import Result, run_trial
from tests.crash.world import Cluster, World, cluster, world
from tests.support.server import ROOT

SAME_KEY_REQUESTS: Final = 10_000
SMALL_DISK: Final = "160m"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    # A run that is ended early prints the results so far, and leaves no process running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.out or Path(tempfile.mkdtemp(prefix="regulars-crash-out-"))
    folder.mkdir(parents=True, exist_ok=True)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    commit = _commit()
    say(f"seed {seed}, commit {commit}, results in {folder}")
    if options.soak is not None:
        return _soak(options, folder, commit)
    if options.only in MEASURES:
        return _measure(options, folder, commit)
    choose(options.only)
    results: list[Result] = []
    kills: Counter[str] = Counter()
    started = time.monotonic()
    # One server process and then two, or as many as requested.
    half = options.trials // 2
    shares = {options.servers: options.trials} if options.servers else {1: half, 2: options.trials - half}
    try:
        with cluster() as place:
            for servers, share in shares.items():
                if share:
                    kills += _run_trials(
                        place, results, options, servers=servers, share=share, seed=seed, folder=folder
                    )
    finally:
        found = summary(results, kills, seed=seed, commit=commit, seconds=time.monotonic() - started)
        (folder / "results.json").write_text(json.dumps(found, indent=1))
        show(results, found, say)
    return 1 if found["violations"] else 0


def _run_trials(
    place: Cluster,
    results: list[Result],
    options: argparse.Namespace,
    *,
    servers: int,
    share: int,
    seed: int,
    folder: Path,
) -> Counter[str]:
    deck = choose(options.only)
    with world(place, servers=servers, planted_bug=options.planted) as running:
        for _ in range(share):
            number = seed + len(results)
            fault = deck[number % len(deck)]
            with _where(place, running, fault) as (where, skipped):
                results.append(run_trial(where, fault, seed=number, folder=folder, keep=options.keep, skipped=skipped))
            _print_trial(results[-1], len(results), options)
            if results[-1].violations and options.planted:
                break
        return Counter(running.kills)


@contextlib.contextmanager
def _where(place: Cluster, running: World, fault: Fault) -> Iterator[tuple[World, str]]:
    """The shared world, or a new one on a small disk; or the reason why that is impossible."""
    if not fault.needs:
        yield running, ""
        return
    with contextlib.ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(size=SMALL_DISK))
        except CannotMountError as error:
            yield running, str(error)
            return
        url = stack.enter_context(database_on(disk, place.url))
        yield stack.enter_context(world(place, servers=len(running.servers), url=url, disk=disk)), ""


def _measure(options: argparse.Namespace, folder: Path, commit: str) -> int:
    """Runs a measurement instead of trials."""
    with cluster() as place:
        found = MEASURES[options.only](place, options.servers or 2, say)
    return _conclude(options.only, found, folder, commit)


def _soak(options: argparse.Namespace, folder: Path, commit: str) -> int:
    """Runs a soak; one that is ended early prints the results so far and counts as failed."""
    window_s = options.soak * 60 / WINDOWS
    found = SoakResult(options.soak, window_s, warm_up_s=window_s, violations=["ended early"])
    try:
        with cluster() as place, world(place, servers=options.servers or 2, is_measured=True) as running:
            soak(running, found, say=say, rate=options.rate)
    finally:
        if found.is_whole:
            found.violations.remove("ended early")
        show_soak(found, say)
        code = _conclude("soak", found.as_json(), folder, commit)
    return code


def _conclude(name: str, found: dict[str, Any], folder: Path, commit: str) -> int:
    (folder / f"{name}.json").write_text(json.dumps({"commit": commit, **found}, indent=1))
    for what, value in found.items():
        if what not in {"samples", "windows", "violations"}:
            say(f"{what}: {value}")
    for violation in found["violations"]:
        say(f"VIOLATED {violation}")
    say(f"{len(found['violations'])} violations." if found["violations"] else "No violation.")
    return 1 if found["violations"] else 0


def _same_key(place: Cluster, servers: int, _say: Callable[[str], None]) -> dict[str, Any]:
    with world(place, servers=servers) as running:
        return vars(same_key(running, _shop(running), count=SAME_KEY_REQUESTS))


def _shop(running: World) -> Shop:
    [shop] = open_shops(running.url, ["c0de"], hooks_url=running.external.hooks_url, public_url=running.public_url)
    return shop


MEASURES: Final[dict[str, Callable[[Cluster, int, Callable[[str], None]], dict[str, Any]]]] = {
    "same_key": _same_key,
    "overload": overload,
    "rate_limit": rate_limit,
    "campaign": campaign_under_kills,
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _print_trial(result: Result, number: int, options: argparse.Namespace) -> None:
    if result.skipped:
        say(f"{number}/{options.trials} seed {result.seed} {result.fault}: skipped, {result.skipped}")
        return
    state = "ok" if not result.violations else "VIOLATED"
    about = f"{result.servers} server(s), {result.calls} calls, {result.lost} unknown, back in {result.recovery_s} s"
    missed = "" if result.happened else " (the fault did not happen)"
    say(f"{number}/{options.trials} seed {result.seed} {result.fault}: {state} in {result.seconds} s; {about}{missed}")
    for violation in result.violations:
        say(f"    {violation[:600]}")
    if result.violations:
        again = f"bin/crash --trials 1 --seed {result.seed} --servers {result.servers} --only {options.only or 'all'}"
        say(f"    again: {again}; history: {result.history}")


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bin/crash", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=20, help="how many (default 20)")
    parser.add_argument("--seed", type=int, help="of the first trial; the next ones count on")
    parser.add_argument(
        "--only", metavar="FAULT", help="a fault, a failpoint, or a group: kill, place, postgresql, all"
    )
    parser.add_argument(
        "--soak", nargs="?", type=float, const=30.0, metavar="MINUTES", help="run for long (default 30 minutes)"
    )
    parser.add_argument("--rate", type=float, help="of a soak, in tickets a second (default: a quarter of the most)")
    parser.add_argument(
        "--servers", type=int, choices=(1, 2), help="server processes (default: half with 1, half with 2)"
    )
    parser.add_argument("--out", type=Path, help="folder for histories and results.json")
    parser.add_argument("--keep", action="store_true", help="keep the history of trials that passed, too")
    parser.add_argument("--planted", default="", help="run with a planted bug; stop when a check finds it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
