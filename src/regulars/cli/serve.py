"""`regulars serve`: run the API, the pages, the worker and the analysis process."""

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
import uvloop

from regulars.accounts.link_use import awaits_first_owner, make_first_owner_link
from regulars.cli import database, database_pool, owner_link
from regulars.cli.address import find_address
from regulars.cli.output import CommandError, out
from regulars.cli.start_steps import step
from regulars.kit import log, metrics, vault
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.process import Lifeline, ReadySignal, Stop, on_parent_exit, on_stop_signals, send_ready
from regulars.kit.releases import ProcessRole
from regulars.kit.settings import PORT_MAX, Settings, variable_of
from regulars.kit.shared_memory import map_block, new_block
from regulars.links.marks import set_link_url
from regulars.postgres import embedded
from regulars.privacy.erasure_log import ErasureLog
from regulars.processes import in_use, revive, serve_lock, server_process
from regulars.processes.listening import bound_socket, listen
from regulars.processes.supervise import Child, supervise
from regulars.work.due import find_due_organizations
from regulars.work.queue import Due
from regulars.work.statistics import Statistics

# Lines that a user needs come last. They do not wait longer than this for the children, which may fail to start.
CHILDREN_START_S_MAX: Final = 30.0
WATCH_LINK_S: Final = 1.0
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
    loaded = log.load_for_service()
    settings = dataclasses.replace(
        loaded,
        workers=workers or loaded.workers,
        host=host or loaded.host,
        port=loaded.port if port is None else port,
    )
    with (
        serve_lock.hold(settings) as lock,
        # A taken port shows before a database is made.
        bound_socket(settings) as listening,
        _opened_database(settings) as url,
        in_use.shared_lock(url) as registration,
    ):
        listen(listening, settings)
        _prepare_schema(settings, url, with_worker=not no_worker)
        embedded_folder = settings.data_dir if settings.is_embedded else None
        settings = database.with_secret_key(settings, url)
        registration.publish_key_fingerprint(vault.of(settings).fingerprint)
        database.finish_restore(url)
        _check_erasure_log(settings)
        database.check_change_lists(url)
        settings = dataclasses.replace(settings, database_url=url, port=listening.getsockname()[1])
        lock.publish_address(settings.own_url)
        set_link_url(settings.link_url, demo_url=settings.public_url or settings.own_url)
        metrics.PROCESS_METRICS.publish_to(server_process.metrics_folder(settings), process_name="0")
        is_started = _run(_serve_all(settings, listening, with_worker=not no_worker, embedded_folder=embedded_folder))
    if not is_started:
        raise CommandError("The server could not start; the log above says why.")


def serve_process(
    *,
    listening: Annotated[int, typer.Option(help="File descriptor of the bound socket.")],
    lifeline: Annotated[int, typer.Option(help="File descriptor that closes when the parent exits.")],
    ready: Annotated[int, typer.Option(help="File descriptor for a byte when the server has started.")],
    slot: Annotated[int, typer.Option(help="Number of this process, from 0.")],
    host: Annotated[str, typer.Option(help="Address the socket is bound to.")],
    workers: Annotated[int, typer.Option(help="Number of server processes.")],
    shared: Annotated[int, typer.Option(help="File descriptor of the shared memory.")],
) -> None:
    bound = socket.socket(fileno=listening)
    settings = dataclasses.replace(log.load_for_service(), host=host, port=bound.getsockname()[1], workers=workers)
    with database.opened(settings) as url:
        database.check_schema(url, ProcessRole.SERVER)
        metrics.PROCESS_METRICS.publish_to(server_process.metrics_folder(settings), process_name=str(slot))
        settings = dataclasses.replace(database.with_secret_key(settings, url), database_url=url)

        async def run() -> bool:
            stop = Stop()
            on_stop_signals(stop.request)
            # A server that is started again needs the port soon.
            on_parent_exit(lifeline, stop.hurry)
            started, memory = asyncio.Event(), map_block(shared)
            sending = asyncio.create_task(_send_when(started, ready))
            try:
                return await server_process.serve(settings, bound, stop=stop, started=started, shared=memory)
            finally:
                sending.cancel()

        is_started = _run(run())
    if not is_started:
        raise CommandError("This server process could not start; the log above says why.")


async def _send_when(started: asyncio.Event, ready: int) -> None:
    await started.wait()
    send_ready(ready)


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
    lifeline, ready = Lifeline(), ReadySignal()
    children = [(_child("worker", lifeline, ready), settings.shutdown_grace_s)] if with_worker else []
    if settings.workers > 1:
        # All server processes count the requests of an API key in this memory.
        shared, grace_s = new_block(), settings.drain_s + settings.shutdown_grace_s
        children += [
            (_server_child(settings, slot, listening, shared, (lifeline, ready)), grace_s)
            for slot in range(settings.workers)
        ]
        started.set()
    supervised = [asyncio.create_task(supervise(child, stop=stop, grace_s=grace_s)) for child, grace_s in children]
    supervised.append(asyncio.create_task(_analyse_when_needed(settings, _child("analysis", lifeline), stop=stop)))
    if not with_worker:
        supervised.append(asyncio.create_task(_gather_statistics(settings, stop=stop.requested)))
    if embedded_folder is not None:
        supervised.append(asyncio.create_task(revive.keep_alive(embedded_folder, stop=stop.requested)))
    announcing = asyncio.create_task(_announce(settings, started, partial(ready.wait, len(children))))
    try:
        if settings.workers > 1:
            await stop.requested.wait()
            # When the children have closed theirs too, connections are refused; else they would wait for the end.
            listening.close()
            return True
        return await server_process.serve(settings, listening, stop=stop, started=started)
    finally:
        stop.requested.set()
        announcing.cancel()
        await asyncio.wait({announcing, *supervised})
        await asyncio.gather(*supervised)
        lifeline.close()
        ready.close()


async def _gather_statistics(settings: Settings, *, stop: asyncio.Event) -> None:
    """Update the planner statistics, as the worker would: otherwise query plans for empty tables would stay in use."""
    async with database_pool.open_pool(settings.database_url or "") as pool:
        gathering = asyncio.create_task(Statistics(pool).run())
        try:
            await stop.wait()
        finally:
            gathering.cancel()
            await asyncio.wait([gathering])


async def _analyse_when_needed(settings: Settings, child: Child, *, stop: Stop) -> None:
    """Start the analysis process when the first segment exists: until then other processes can use its memory."""
    async with database_pool.open_pool(settings.database_url or "") as pool:
        while not stop.requested.is_set():
            with contextlib.suppress(*CONNECTION_ERRORS):
                async with pool.transaction(until=monotonic() + ANALYSIS_QUERY_S_MAX) as tx:
                    if await find_due_organizations(tx, NEEDS_ANALYSIS, after=None):
                        break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.requested.wait(), ANALYSIS_POLL_S)
    if not stop.requested.is_set():
        await supervise(child, stop=stop, grace_s=settings.shutdown_grace_s)


def _child(name: str, lifeline: Lifeline, ready: ReadySignal | None = None) -> Child:
    """Make the child process that runs the command with this name."""
    options = {"--lifeline": lifeline.reading} | ({} if ready is None else {"--ready": ready.writing})
    arguments = [name, *(str(item) for option in options.items() for item in option)]
    return Child(name=name, arguments=arguments, descriptors=list(options.values()))


def _server_child(
    settings: Settings, slot: int, listening: socket.socket, shared: int, pipes: tuple[Lifeline, ReadySignal]
) -> Child:
    lifeline, ready = pipes
    options = {
        "--listening": listening.fileno(),
        "--lifeline": lifeline.reading,
        "--ready": ready.writing,
        "--slot": slot,
        "--host": settings.host,
        "--workers": settings.workers,
        "--shared": shared,
    }
    arguments = ["serve-process", *(str(item) for option in options.items() for item in option)]
    descriptors = [listening.fileno(), lifeline.reading, ready.writing, shared]
    return Child(name=f"server {slot}", arguments=arguments, descriptors=descriptors)


async def _announce(
    settings: Settings, started: asyncio.Event, wait_for_children: Callable[[], Coroutine[object, object, None]]
) -> None:
    """Say where the server is; at the very end, how its first owner gets in."""
    address = settings.own_url
    with step("Starting the server", "server.starting", moves=False):
        await started.wait()
        if log.writes_json():
            _log.info("server.started", url=address, port=settings.port, workers=settings.workers)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wait_for_children(), CHILDREN_START_S_MAX)
    if not log.writes_json():
        out.print(f"Regulars serves on {address}", markup=False)
    async with database_pool.open_pool(settings.database_url or "") as opened:
        async with opened.transaction() as tx:
            token, public = await make_first_owner_link(tx), await find_address(tx, settings)
        if owner_link.publish(settings, token, address=public) and token is not None:
            await _remove_used_link(settings, opened, token)


async def _remove_used_link(settings: Settings, opened: Database, token: str) -> None:
    """Remove the file with the owner link as soon as the link cannot be used any more."""
    while True:
        await asyncio.sleep(WATCH_LINK_S)
        with contextlib.suppress(*CONNECTION_ERRORS):
            async with opened.transaction() as tx:
                if not await awaits_first_owner(tx, token):
                    break
    with contextlib.suppress(OSError):
        owner_link.remove(settings)


def _prepare_schema(settings: Settings, url: str, *, with_worker: bool) -> None:
    database.check_fsync_settings(url)
    applied = database.apply_migrations(url) if settings.is_embedded else []
    if applied and log.writes_json():
        _log.info("database.migrated", migrations=len(applied), last=applied[-1])
    database.check_schema(url, ProcessRole.SERVER, *([ProcessRole.WORKER] if with_worker else []))


def _check_erasure_log(settings: Settings) -> None:
    if not ErasureLog(settings.erasure_log_path).is_writable():
        _log.warning("erasure_log.cannot_be_written", path=str(settings.erasure_log_path))


@contextlib.contextmanager
def _opened_database(settings: Settings) -> Iterator[str]:
    """Open the database for the time of the block, and say meanwhile what is done."""
    is_new = settings.is_embedded and not embedded.exists(settings.data_dir)
    if is_new:
        doing = step(f"Making a database in {settings.data_dir}", "database.creating", is_logged=True)
    elif settings.is_embedded:
        doing = step(f"Starting the database in {settings.data_dir}", "database.starting")
    else:
        doing = step("Connecting to the database", "database.connecting")
    with contextlib.ExitStack() as stack:
        with doing:
            url = stack.enter_context(database.opened(settings, may_create=True))
        yield url
