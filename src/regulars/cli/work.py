"""`regulars worker`: the jobs, without the server."""

from typing import Annotated

import typer

from regulars import worker as worker_process
from regulars.cli import database, unlock
from regulars.kit import log
from regulars.kit.settings import load
from regulars.processes import in_use


def worker(
    lifeline: Annotated[
        int | None, typer.Option(hidden=True, help="File descriptor that ends with the parent.")
    ] = None,
) -> None:
    """Run the jobs until SIGTERM or Ctrl+C; `regulars serve` does it too, unless told --no-worker."""
    settings = load()
    log.configure(settings)
    with database.opened(settings) as url, in_use.shared(url):
        database.refuse_pending(url)
        worker_process.run(unlock.unlocked(settings, url), url, lifeline=lifeline)
