"""The Procrastinate application on our PostgreSQL: who may open it, and the names its queues and jobs go by."""

from typing import Final

import procrastinate

from regulars.kit import connecting

DRAIN_JOB: Final = "work.drain"
DRAIN_QUEUE: Final = "drain"
SCHEDULE_QUEUE: Final = "schedule"
# Jobs hold no lock for longer than their own statement, and a worker without a connection for this long should say so.
POOL_WAIT_S: Final = 10.0
STATEMENT_TIMEOUT_MS: Final = 30_000
LOCK_TIMEOUT_MS: Final = 5_000


def create_app(url: str, *, pool_max: int) -> procrastinate.App:
    """An application with a small pool of its own, apart from the pool that serves requests."""
    connector = procrastinate.PsycopgConnector(
        conninfo=url,
        min_size=1,
        max_size=pool_max,
        timeout=POOL_WAIT_S,
        kwargs=connecting.arguments(
            url,
            application_name="regulars jobs",
            statement_timeout=STATEMENT_TIMEOUT_MS,
            lock_timeout=LOCK_TIMEOUT_MS,
        ),
        configure=connecting.pin,
        name="regulars-jobs",
    )
    return procrastinate.App(connector=connector)
