"""Break the running system on purpose and prove from histories that nothing was lost, doubled or stuck.

    bin/crash --trials 30                     thirty faults of all kinds, two server processes
    bin/crash --trials 300 --only kill        kill -9 at every failpoint and at random
    bin/crash --trials 1 --seed 1234 --only postmaster --servers 1      one trial again
    bin/crash --only same_key                 ten thousand requests with one idempotency key
    bin/crash --only overload                 half a minute of five times too much
    bin/crash --soak                          half an hour under a quarter of what the machine can take

Each trial's seed decides the traffic, the moment and the fault; not how the system's processes take turns.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.crash.crowds import measure_rate, overload, same_key
from tests.crash.faults import choose
from tests.crash.report import show, summary
from tests.crash.shops import Shop, open_shops
from tests.crash.soak import soak
from tests.crash.trial import Result, run_trial
from tests.crash.world import Cluster, World, cluster, world
from tests.support.server import ROOT

SAME_KEY_REQUESTS: Final = 10_000
OVERLOAD_S: Final = 30.0
NORMAL_AGAIN_S_MAX: Final = 5.0


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    # Whoever ends a run early gets what was found so far, and no process is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.out or Path(tempfile.mkdtemp(prefix="regulars-crash-out-"))
    folder.mkdir(parents=True, exist_ok=True)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    commit = _commit()
    say(f"seed {seed}, commit {commit}, results in {folder}")
    if options.soak is not None or options.only in MEASURES:
        return _measure(options, folder, commit)
    choose(options.only)
    results: list[Result] = []
    kills: Counter[str] = Counter()
    started = time.monotonic()
    # One process and then two, or as many as were asked for.
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
            results.append(run_trial(running, fault, seed=number, folder=folder, keep=options.keep))
            _tell(results[-1], len(results), options)
            if results[-1].violations and options.planted:
                break
        return Counter(running.kills)


def _measure(options: argparse.Namespace, folder: Path, commit: str) -> int:
    """What is no trial: many at once, too much at once, and for long."""
    servers = options.servers or 2
    with cluster() as place:
        if options.soak is not None:
            with world(place, servers=servers) as running:
                name, found = "soak", soak(running, minutes=options.soak, say=say).as_json()
        else:
            name, found = options.only, MEASURES[options.only](place, servers)
    (folder / f"{name}.json").write_text(json.dumps({"commit": commit, **found}, indent=1))
    for what, value in found.items():
        say(f"{what}: {value}")
    return 1 if found["violations"] else 0


def _same_key(place: Cluster, servers: int) -> dict[str, Any]:
    with world(place, servers=servers) as running:
        return vars(same_key(running, _shop(running), count=SAME_KEY_REQUESTS))


def _overload(place: Cluster, servers: int) -> dict[str, Any]:
    """Five times what a key may send, for half a minute, and then as before.

    What a key may send is set to a fifth of what the machine takes from callers who wait: our own client, which shares
    the machine with the server, could not send five times as much as that.
    """
    with world(place, servers=servers) as running:
        most = measure_rate(running, _shop(running))
    allowed = max(1, int(most / 5))
    say(f"{most:.0f} tickets a second from callers who wait; the key may send {allowed} a second")
    limits = {"REGULARS_RATE_LIMIT_PER_S": str(allowed), "REGULARS_RATE_LIMIT_BURST": str(allowed)}
    with world(place, servers=servers, **limits) as running:
        shop = _shop(running)
        found = overload(running, shop, rate=5 * allowed, seconds=OVERLOAD_S, sustainable=allowed)
        started = time.monotonic()
        while not measure_rate(running, shop, seconds=0.2, at_once=1):
            if time.monotonic() - started > 2 * NORMAL_AGAIN_S_MAX:
                break
        found.normal_again_s = round(time.monotonic() - started, 2)
    violations = [f"I10: answered {it}" for it in found.statuses if it not in {"200", "201", "429", "503"}]
    violations += [f"I1: {found.missing} acknowledged tickets are missing"] if found.missing else []
    violations += ["STUCK: not normal again in time"] if found.normal_again_s > NORMAL_AGAIN_S_MAX else []
    return {**vars(found), "violations": violations}


def _shop(running: World) -> Shop:
    [shop] = open_shops(running.url, ["c0de"], hooks_url=running.outside.hooks_url, public_url=running.public_url)
    return shop


MEASURES: Final[dict[str, Callable[[Cluster, int], dict[str, Any]]]] = {"same_key": _same_key, "overload": _overload}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _tell(result: Result, number: int, options: argparse.Namespace) -> None:
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
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or "unknown"


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
    parser.add_argument(
        "--servers", type=int, choices=(1, 2), help="server processes (default: half with 1, half with 2)"
    )
    parser.add_argument("--out", type=Path, help="folder for histories and results.json")
    parser.add_argument("--keep", action="store_true", help="keep the history of trials that passed, too")
    parser.add_argument("--planted", default="", help="run with a mistake on purpose; it stops when that is found")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
