"""Hits failpoints while a process starts or ends, in a sweep, and in a migration."""

import time
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import psycopg
from psycopg import sql
from tests.crash.processes import Process, ServerProcess
from tests.support.database import with_database

from regulars.kit import migrate

if TYPE_CHECKING:
    # `faults` imports this module.
    from tests.crash.faults import Scene

ENDS_WITHIN_S: Final = 30.0
EXPIRED: Final = 40


def break_start_or_end(scene: "Scene", process: Process, place: str, how: str, seconds: float) -> bool:
    trap = {"place": place, "act": how, "seconds": seconds}
    process.new_hits()
    if place == "drain":
        process.arm(place, how, seconds=seconds)
        # The datagram must arrive before the signal.
        time.sleep(0.1)
        process.stop()
    else:
        if place == "sweep":
            _leave_expired_keys(scene)
        process.stop()
        if isinstance(process, ServerProcess):
            process.start(traps=[trap])
        else:
            scene.world.start_worker(traps=[trap])
        _wait_for(process)
    was_hit = bool(process.new_hits())
    if was_hit and (how == "kill" or (how == "raise" and place != "sweep")):
        # An error during start or end also ends the process.
        process.wait()
    if was_hit and how == "kill":
        scene.world.count(f"kill at {place}")
    return was_hit


def _wait_for(process: Process) -> None:
    deadline = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < deadline and process.is_alive():
        if process.was_hit():
            time.sleep(0.2)
            return
        time.sleep(0.05)


def _leave_expired_keys(scene: "Scene") -> None:
    """Inserts expired responses; the first sweep of a worker must find them, and they must be deleted in the end."""
    organization_id = scene.shops[0].organization_id
    scene.world.execute(
        "INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)"
        " SELECT %s, 'expired-' || n, '\\x00', 200, '{}', now() - interval '25 hours' FROM generate_series(1, %s) n",
        organization_id,
        EXPIRED,
    )

    def are_gone() -> bool:
        left = scene.world.rows(
            "SELECT count(*) FROM idempotency_keys WHERE organization_id = %s AND key LIKE 'expired-%%'",
            organization_id,
        )
        return bool(left[0][0] == 0)

    scene.awaited.append(("expired keys are swept", are_gone))


def break_migration(scene: "Scene", how: str) -> bool:
    """Interrupts the migration of an empty database; a second one must complete it."""
    world = scene.world
    name = f"migrated_{uuid4().hex[:8]}"
    with psycopg.connect(world.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = with_database(world.url, name)
    try:
        command = Process("migrate", world.folder, ["migrate"], {**world.environment, "DATABASE_URL": url})
        trap = {
            "place": "migration",
            "act": how,
            "passes": scene.chance.randrange(len(list(migrate.MIGRATIONS.glob("[0-9]*.sql")))),
        }
        command.start(traps=[trap])
        command.wait(60)
        was_hit = bool(command.new_hits())
        if was_hit and how == "kill":
            world.count("kill at migration")
        command.start()
        command.wait(60)
        assert not migrate.pending(url), "I1: a migration that was broken off cannot be finished"
    finally:
        with psycopg.connect(world.url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
    return was_hit
