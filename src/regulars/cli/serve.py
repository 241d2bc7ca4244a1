"""`regulars serve`: run the API, the pages, the worker and the analysis process."""

import asyncio
import contextlib
import dataclasses
import errno
import socket
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
import uvloop

from regulars.accounts.link_use import make_first_owner_link
from regulars.cli import database, owner_link
from regulars.cli.output import CommandError, out
from regulars.kit import log, metrics, migrate, vault
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS
from regulars.kit.process import Lifeline, Stop, on_parent_exit, on_stop_signals
from regulars.kit.releases import ProcessRole
from regulars.kit.settings import PORT_MAX, Settings, load, variable_of
from regulars.kit.shared_memory import map_block, new_block
from regulars.privacy.erasure_log import ErasureLog
from regulars.processes import in_use, revive, serve_lock, server_process
from regulars.processes.supervise import Child, supervise
from regulars.work.due import find_due_organizations
from regulars.work.queue import Due
from regulars.work.statistics import Statistics

# The child processes of a killed server release the port within this time.
PORT_WAIT_S: Final = 2.0
PORT_RETRY_S: Final = 0.05
ANALYSIS_POLL_S: Final = 2.0
ANALYSIS_QUERY_S_MAX: Final = 2.0
# Finds the organizations that need the analysis process: only they have a row in this table.
NEEDS_ANALYSIS: Final = Due(table="segment_columns", column="updated_at")

_log = log.get(__name__)


def _default(name: str) -> str:
    return f"{variable_of(name)}, else {getattr(Settings(), name)}"


def serve(
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Number of server processes.", show_default=_default("workers")),
    ] = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Do not run background jobs; `regulars worker` runs them.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default=_default("host"))] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=PORT_MAX, help="Port to listen on; 0 picks a free one.", show_default=_default("port")),
    ] = None,
) -> None:
    loaded = load()
    settings = dataclasses.replace(
        loaded,
        workers=workers or loaded.workers,
        host=host or loaded.host,
        port=loaded.port if port is None else port,
    )
    log.configure(settings, is_service=True)
    with (
        serve_lock.hold(settings) as lock,
        database.opened(settings, may_create=True) as url,
        in_use.shared_lock(url) as registration,
        _listening_socket(settings) as listening,
    ):
        _prepare_schema(settings, url, with_worker=not no_worker)
        embedded_folder = settings.data_dir if settings.is_embedded else None
        settings = database.with_secret_key(settings, url)
        registration.publish_key_fingerprint(vault.of(settings).fingerprint)
        database.finish_restore(url)
        _check_erasure_log(settings)
        database.check_change_lists(url)
        settings = dataclasses.replace(settings, database_url=url, port=listening.getsockname()[1])
        lock.publish_address(_own_address(settings))
        metrics.PROCESS_METRICS.publish_to(server_process.metrics_folder(settings), process_name="0")
        is_started = _run(_serve_all(settings, listening, with_worker=not no_worker, embedded_folder=embedded_folder))
    if not is_started:
        raise CommandError("The server could not start; the log above says why.")


def serve_process(
    *,
    listening: Annotated[int, typer.Option(help="File descriptor of the bound socket.")],
    lifeline: Annotated[int, typer.Option(help="File descriptor that closes when the parent exits.")],
    slot: Annotated[int, typer.Option(help="Number of this process, from 0.")],
    host: Annotated[str, typer.Option(help="Address the socket is bound to.")],
    workers: Annotated[int, typer.Option(help="Number of server processes.")],
    shared: Annotated[int, typer.Option(help="File descriptor of the shared memory.")],
) -> None:
    bound = socket.socket(fileno=listening)
    settings = dataclasses.replace(load(), host=host, port=bound.getsockname()[1], workers=workers)
    log.configure(settings, is_service=True)
    with database.opened(settings) as url:
        database.check_schema(url, ProcessRole.SERVER)
        metrics.PROCESS_METRICS.publish_to(server_process.metrics_folder(settings), process_name=str(slot))
        settings = dataclasses.replace(database.with_secret_key(settings, url), database_url=url)

        async def run() -> bool:
            stop = Stop()
            on_stop_signals(stop.request)
            # A server that is started again needs the port soon.
            on_parent_exit(lifeline, stop.hurry)
            memory = map_block(shared)
            return await server_process.serve(settings, bound, stop=stop, started=asyncio.Event(), shared=memory)

        is_started = _run(run())
    if not is_started:
        raise CommandError("This server process could not start; the log above says why.")


def _run(main: Coroutine[object, object, bool]) -> bool:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def _serve_all(
    settings: Settings, listening: socket.socket, *, with_worker: bool, embedded_folder: Path | None
) -> bool:
    """Start and supervise the child processes; if one server process is enough, serve in this process.

    `settings.workers` is the number of server processes; the worker runs background jobs. `embedded_folder` is the
    folder of the embedded database, which is restarted after a crash.
    """
    stop, started = Stop(), asyncio.Event()
    on_stop_signals(stop.request)
    lifeline = Lifeline()
    children = [(_child("worker", lifeline), settings.shutdown_grace_s)] if with_worker else []
    if settings.workers > 1:
        # All server processes count the requests of an API key in this memory.
        shared, grace_s = new_block(), settings.drain_s + settings.shutdown_grace_s
        children += [
            (_server_child(settings, slot, listening, lifeline, shared), grace_s) for slot in range(settings.workers)
        ]
        started.set()
    supervised = [asyncio.create_task(supervise(child, stop=stop, grace_s=grace_s)) for child, grace_s in children]
    supervised.append(asyncio.create_task(_analyse_when_needed(settings, _child("analysis", lifeline), stop=stop)))
    if not with_worker:
        supervised.append(asyncio.create_task(_gather_statistics(settings, stop=stop.requested)))
    if embedded_folder is not None:
        supervised.append(asyncio.create_task(revive.keep_alive(embedded_folder, stop=stop.requested)))
    announcing = asyncio.create_task(_announce(settings, started))
    try:
        if settings.workers > 1:
            await stop.requested.wait()
            return True
        return await server_process.serve(settings, listening, stop=stop, started=started)
    finally:
        stop.requested.set()
        announcing.cancel()
        await asyncio.gather(*supervised)
        lifeline.close()


async def _gather_statistics(settings: Settings, *, stop: asyncio.Event) -> None:
    """Update the planner statistics, as the worker would: otherwise query plans for empty tables would stay in use."""
    async with database.pool(settings.database_url or "") as pool:
        gathering = asyncio.create_task(Statistics(pool).run())
        try:
            await stop.wait()
        finally:
            gathering.cancel()
            await asyncio.wait([gathering])


async def _analyse_when_needed(settings: Settings, child: Child, *, stop: Stop) -> None:
    """Start the analysis process when the first segment exists: until then other processes can use its memory."""
    async with database.pool(settings.database_url or "") as pool:
        while not stop.requested.is_set():
            with contextlib.suppress(*CONNECTION_ERRORS):
                async with pool.transaction(until=monotonic() + ANALYSIS_QUERY_S_MAX) as tx:
                    if await find_due_organizations(tx, NEEDS_ANALYSIS, after=None):
                        break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.requested.wait(), ANALYSIS_POLL_S)
    if not stop.requested.is_set():
        await supervise(child, stop=stop, grace_s=settings.shutdown_grace_s)


def _child(name: str, lifeline: Lifeline) -> Child:
    """Make the child process that runs the command with this name."""
    return Child(name=name, arguments=[name, "--lifeline", str(lifeline.reading)], descriptors=[lifeline.reading])


def _server_child(settings: Settings, slot: int, listening: socket.socket, lifeline: Lifeline, shared: int) -> Child:
    options = {
        "--listening": listening.fileno(),
        "--lifeline": lifeline.reading,
        "--slot": slot,
        "--host": settings.host,
        "--workers": settings.workers,
        "--shared": shared,
    }
    arguments = ["serve-process", *(str(item) for option in options.items() for item in option)]
    descriptors = [listening.fileno(), lifeline.reading, shared]
    return Child(name=f"server {slot}", arguments=arguments, descriptors=descriptors)


async def _announce(settings: Settings, started: asyncio.Event) -> None:
    await started.wait()
    address = _own_address(settings)
    if not log.writes_json():
        out.print(f"Regulars serves on {address}", markup=False)
    _log.info("server.started", url=address, port=settings.port, workers=settings.workers)
    owner_link.publish(settings, await _first_owner_token(settings))


def _own_address(settings: Settings) -> str:
    return dataclasses.replace(settings, public_url=None).base_url


async def _first_owner_token(settings: Settings) -> str | None:
    async with database.pool(settings.database_url or "") as opened, opened.transaction() as tx:
        return await make_first_owner_link(tx)


def _prepare_schema(settings: Settings, url: str, *, with_worker: bool) -> None:
    database.check_fsync_settings(url)
    applied = migrate.migrate(url) if settings.is_embedded else []
    if applied:
        _log.info("database.migrated", migrations=applied)
    database.check_schema(url, ProcessRole.SERVER, *([ProcessRole.WORKER] if with_worker else []))


def _check_erasure_log(settings: Settings) -> None:
    if not ErasureLog(settings.erasure_log_path).is_writable():
        _log.warning("erasure_log.cannot_be_written", path=str(settings.erasure_log_path))


@contextlib.contextmanager
def _listening_socket(settings: Settings) -> Iterator[socket.socket]:
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise CommandError(f"The host '{settings.host}' is not an address: {error.strerror}.") from None
    with socket.socket(family, kind, protocol) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(listening, address, settings)
        listening.listen(server_process.BACKLOG)
        yield listening


def _bind(listening: socket.socket, address: object, settings: Settings) -> None:
    deadline = time.monotonic() + PORT_WAIT_S
    while True:
        try:
            listening.bind(address)  # type: ignore[arg-type]  # its type depends on the family getaddrinfo chose
            return
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(PORT_RETRY_S)
                continue
            why = "is already in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
            raise CommandError(f"Port {settings.port} on {settings.host} {why}; choose another with --port.") from None
