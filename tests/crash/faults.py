"""Injects faults into the running system, one per trial, chosen by its seed."""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import psycopg
from tests.crash import disks, failpoint_process, lifecycle_faults
from tests.crash.clients import OPT_OUTS, Caller, Manner
from tests.crash.external import Behaviour
from tests.crash.failpoints import BY_NAME, FAILPOINTS, WORKER, Failpoint
from tests.crash.journal import Call, Journal
from tests.crash.many_clients import SLOW_CLIENTS, run_slow_clients
from tests.crash.marketers import Marketer, break_command
from tests.crash.processes import Process
from tests.crash.shops import CUSTOMERS, Shop
from tests.crash.world import World
from tests.support import samples

TRAP_SECONDS_MAX: Final = 6.0
PROVOKED_SECONDS_MAX: Final = 20.0
UNDER_WAY_S: Final = 1.2
SILENCE_S: Final = 30.0
VICTIMS: Final = ("client backend", "client backend", "client backend", "checkpointer", "walwriter")
BEHAVIOURS: Final[tuple[Behaviour, ...]] = ("hangs", "resets", "twice", "refuses")
CLOCK_OFF_S: Final = 600
FULL: Final = "disk is full"
FULL_SECONDS_MAX: Final = 20.0
WITHDRAWALS: Final = 8
OLDEST_QUEUED: Final = """
SELECT phone_number FROM texts WHERE state = 'queued' AND phone_number = ANY(%s) ORDER BY created_at LIMIT 1
"""


@dataclass
class Scene:
    """The parts of a trial that a fault uses."""

    world: World
    shops: Sequence[Shop]
    journal: Journal
    chance: random.Random
    marketers: Sequence[Marketer] = ()
    # Conditions that must become true before the end of the trial, with their names.
    awaited: list[tuple[str, Callable[[], bool]]] = field(default_factory=list)
    may_have_tracebacks: bool = False
    # The factor of deadlines on a busy machine.
    patience: float = 1.0


@dataclass(frozen=True)
class Fault:
    """`act` returns whether the fault happened: a trap may not be hit."""

    name: str
    act: Callable[[Scene], bool]
    manner: Manner = "usual"
    # Whether the database is unreachable for a while; it must be in use five seconds after its return.
    takes_database: bool = False
    # The disk that the database must be on, if not the shared one.
    needs: Literal["", "small disk"] = ""


def trap_fault(place: Failpoint, how: str) -> Fault:
    def act(scene: Scene) -> bool:
        if place.name == "migration":
            return lifecycle_faults.break_migration(scene, how)
        if place.name == "campaign.stopped":
            return break_command(scene, how)
        where = scene.chance.choice(place.where)
        process = scene.world.worker if where == WORKER else scene.chance.choice(scene.world.servers)
        # A process that sleeps responds late, and its claims expire.
        seconds = scene.chance.uniform(0.3, 2.5)
        scene.may_have_tracebacks = how in {"raise", "cut"}
        if place.is_start_or_end:
            return lifecycle_faults.break_start_or_end(scene, process, place.name, how, seconds)
        process.new_hits()
        passes = scene.chance.randrange(2 if where == WORKER else 8)
        process.arm(place.name, how, passes=passes, seconds=seconds)
        if place.provoked_by:
            scene.world.execute(place.provoked_by, [shop.organization_id for shop in scene.shops])
            return wait_until_hit(scene, process, place.name, how, seconds=PROVOKED_SECONDS_MAX)
        return wait_until_hit(scene, process, place.name, how)

    return Fault(f"{place.name}:{how}", act)


def wait_until_hit(scene: Scene, process: Process, place: str, how: str, *, seconds: float = TRAP_SECONDS_MAX) -> bool:
    deadline = time.monotonic() + seconds * scene.patience
    while time.monotonic() < deadline:
        if process.new_hits():
            if how == "kill":
                process.wait()
                scene.world.count(f"kill at {place}")
            return True
        time.sleep(0.02)
    process.disarm()
    return bool(process.new_hits())


def _kill(scene: Scene, *, server: bool, worker: bool) -> bool:
    time.sleep(scene.chance.uniform(0.0, 0.6))
    if server:
        scene.chance.choice(scene.world.servers).kill()
        scene.world.count("kill of a server")
    if worker:
        scene.world.worker.kill()
        scene.world.count("kill of the worker")
    return True


def _kill_analysis(scene: Scene) -> bool:
    time.sleep(scene.chance.uniform(0.0, 1.5))
    scene.world.analysis.kill()
    scene.world.count("kill of the analysis process")
    return True


def _kill_postmaster(scene: Scene) -> bool:
    time.sleep(scene.chance.uniform(0.0, 0.6))
    scene.world.kill_postmaster()
    scene.world.count("kill of PostgreSQL")
    time.sleep(scene.chance.uniform(0.0, 1.0))
    return True


def _kill_backend(scene: Scene) -> bool:
    """Kills a process of PostgreSQL, which then ends all connections and recovers."""
    time.sleep(scene.chance.uniform(0.0, 0.6))
    victim = scene.chance.choice(VICTIMS)
    found = scene.world.rows(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = %s AND pid <> pg_backend_pid()", victim
    )
    if not found:
        return False
    os.kill(scene.chance.choice(found)[0], signal.SIGKILL)
    scene.world.count("kill of PostgreSQL")
    time.sleep(0.3)
    return True


def _terminate(scene: Scene) -> bool:
    for _ in range(8):
        try:
            scene.world.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        except psycopg.OperationalError:
            return False
        time.sleep(0.2)
    return True


def _cut_commits(scene: Scene) -> bool:
    scene.world.proxy.send(f"cut {scene.chance.randrange(2, 9)}")
    time.sleep(UNDER_WAY_S)
    return True


def _wait(_scene: Scene) -> bool:
    """Does nothing: the fault is in the clients."""
    time.sleep(UNDER_WAY_S)
    return True


def _silence(scene: Scene) -> bool:
    scene.world.proxy.send("freeze")
    time.sleep(SILENCE_S)
    scene.world.proxy.send("thaw")
    return True


def _slow_clients(scene: Scene) -> bool:
    """Runs slow clients; the server must serve the tills meanwhile."""
    served = len(scene.journal.answers)
    got_in = run_slow_clients(scene.world.address.address)
    scene.journal.note(slow_clients=got_in)
    assert len(scene.journal.answers) > served, "STUCK: no till was served beside slow clients"
    return got_in >= SLOW_CLIENTS // 2


def _restart_all(scene: Scene) -> bool:
    """Restarts one process after the other, while the others serve."""
    for server in scene.world.servers:
        server.stop()
        scene.world.start_server(server)
    scene.world.worker.stop()
    scene.world.start_worker()
    return True


def _wrong_clock(scene: Scene) -> bool:
    scene.world.worker.stop()
    seconds = scene.chance.choice([-CLOCK_OFF_S, CLOCK_OFF_S])
    scene.world.start_worker(**{failpoint_process.CLOCK: str(seconds)})
    time.sleep(2 * UNDER_WAY_S)
    scene.world.worker.stop()
    return True


def _fill_disk(scene: Scene) -> bool:
    """Fills the disk of the database until the fault ends."""
    assert scene.world.disk is not None
    filler = disks.fill(scene.world.disk)
    try:
        deadline = time.monotonic() + FULL_SECONDS_MAX
        while time.monotonic() < deadline:
            if any(answer.status == 503 and FULL in answer.body for answer in scene.journal.last(100)):
                time.sleep(UNDER_WAY_S)
                return True
            time.sleep(0.05)
    finally:
        filler.unlink()
    return False


def _misbehave(scene: Scene, *, provider: bool) -> bool:
    behaviour = scene.chance.choice(BEHAVIOURS)
    scene.journal.note(behaviour=behaviour)
    if provider:
        scene.world.external.set_behaviours(provider=behaviour)
    else:
        scene.world.external.set_behaviours(receiver=behaviour)
    time.sleep(2 * UNDER_WAY_S)
    return True


def _withdraw_before_texts(scene: Scene) -> bool:
    """Withdraws consents of customers while a text to them is queued and its claim reads their consent."""
    owners = {shop.number(customer): shop for shop in scene.shops for customer in range(CUSTOMERS)}
    callers = {shop.tag: Caller(scene.world.address, shop.key, scene.journal) for shop in scene.shops}
    deadline = time.monotonic() + TRAP_SECONDS_MAX
    is_withdrawn = False
    while len(owners) > len(scene.shops) * CUSTOMERS - WITHDRAWALS and time.monotonic() < deadline:
        for (number,) in scene.world.rows(OLDEST_QUEUED, list(owners)):
            shop = owners.pop(number)
            body = samples.json_bytes({"phone_number": number}).decode()
            callers[shop.tag].send(Call(OPT_OUTS, body, None, number, tag=shop.tag))
            is_withdrawn = True
        time.sleep(0.02)
    for caller in callers.values():
        caller.close()
    return is_withdrawn


RANDOM_KILLS: Final = (
    Fault("server", lambda scene: _kill(scene, server=True, worker=False)),
    Fault("worker", lambda scene: _kill(scene, server=False, worker=True)),
    Fault("both", lambda scene: _kill(scene, server=True, worker=True)),
    Fault("analysis", _kill_analysis),
)
POSTGRESQL: Final = (
    Fault("postmaster", _kill_postmaster, takes_database=True),
    Fault("backend", _kill_backend, takes_database=True),
)
OTHERS: Final = (
    Fault("calm", _wait),
    Fault("terminate", _terminate, takes_database=True),
    Fault("cut_commits", _cut_commits),
    Fault("cutting_clients", _wait, "cutting"),
    Fault("shuffled", _wait, "shuffling"),
    Fault("withdrawals", _withdraw_before_texts),
    Fault("slow_clients", _slow_clients),
    Fault("silent", _silence, takes_database=True),
    Fault("rolling", _restart_all),
    Fault("disk_full", _fill_disk, takes_database=True, needs="small disk"),
    Fault("clock", _wrong_clock),
    Fault("receiver", lambda scene: _misbehave(scene, provider=False)),
    Fault("provider", lambda scene: _misbehave(scene, provider=True)),
)
KILLS: Final = tuple(trap_fault(place, "kill") for place in FAILPOINTS)
TRAPS: Final = tuple(trap_fault(place, act) for place in FAILPOINTS for act in place.acts)


def _in_turn(faults: Sequence[Fault]) -> Fault:
    """Several faults in one trial; each is repaired before the next."""

    def act(scene: Scene) -> bool:
        happened = [faults[0].act(scene)]
        for fault in faults[1:]:
            scene.world.repair()
            happened.append(fault.act(scene))
        return all(happened)

    manner = next((it.manner for it in faults if it.manner != "usual"), "usual")
    takes_database = any(it.takes_database for it in faults)
    return Fault("+".join(it.name for it in faults), act, manner, takes_database)


def choose(only: str | None) -> tuple[Fault, ...]:
    """The faults that a seed chooses from: all, a group, those of a failpoint, one, or one of several joined by `+`."""
    if only is not None and "+" in only:
        return (_in_turn([choose(name)[0] for name in only.split("+")]),)
    groups: dict[str, tuple[Fault, ...]] = {
        "kill": KILLS + RANDOM_KILLS,
        "place": TRAPS,
        "postgresql": POSTGRESQL,
        "others": OTHERS,
        "all": KILLS + RANDOM_KILLS + POSTGRESQL + OTHERS + tuple(it for it in TRAPS if not it.name.endswith(":kill")),
    }
    if only is None:
        return groups["all"]
    if only in groups:
        return groups[only]
    if only in BY_NAME:
        return tuple(trap_fault(BY_NAME[only], act) for act in BY_NAME[only].acts)
    found = tuple(it for it in groups["all"] if it.name == only)
    if not found:
        names = sorted({*groups, *BY_NAME, *(it.name for it in groups["all"])})
        raise SystemExit(f"There is no fault {only}; there are {', '.join(names)}.")
    return found
