"""`regulars worker`: run background jobs in a process without the server."""

from typing import Annotated

import typer

from regulars import worker as worker_process
from regulars.cli import database
from regulars.kit import log, metrics, vault
from regulars.kit.releases import ProcessRole
from regulars.processes import in_use, server_process


def worker(
    lifeline: Annotated[
        int | None, typer.Option(hidden=True, help="File descriptor that closes when the parent exits.")
    ] = None,
    ready: Annotated[
        int | None, typer.Option(hidden=True, help="File descriptor for a byte when the worker has started.")
    ] = None,
) -> None:
    settings = log.load_for_service()
    with database.opened(settings) as url, in_use.shared_lock(url) as registration:
        database.check_schema(url, ProcessRole.WORKER)
        # The server's `/metrics` includes the metrics of the worker with the same data folder.
        metrics.PROCESS_METRICS.publish_to(server_process.metrics_folder(settings), process_name="worker")
        settings = database.with_secret_key(settings, url)
        registration.publish_key_fingerprint(vault.of(settings).fingerprint)
        database.finish_restore(url)
        if lifeline is None:
            # A worker that `regulars serve` starts has the same database, about which `serve` has warned.
            database.check_change_lists(url)
        worker_process.run(settings, url, lifeline=lifeline, ready=ready)
