"""The Procrastinate application on our PostgreSQL: who may open it, and the names its queues and jobs go by."""

from typing import Any, Final

import procrastinate

from regulars.kit.db import CONNECT_TIMEOUT_S

DRAIN_JOB: Final = "work.drain"
DRAIN_QUEUE: Final = "drain"
SCHEDULE_QUEUE: Final = "schedule"
# Jobs hold no lock for longer than their own statement, and a worker without a connection for this long should say so.
POOL_WAIT_S: Final = 10.0


def create_app(url: str, *, pool_max: int) -> procrastinate.App:
    """An application with a small pool of its own, apart from the pool that serves requests."""
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "options": "-c timezone=UTC -c statement_timeout=30000 -c lock_timeout=5000",
        "application_name": "regulars jobs",
    }
    connector = procrastinate.PsycopgConnector(
        conninfo=url, min_size=1, max_size=pool_max, timeout=POOL_WAIT_S, kwargs=options, name="regulars-jobs"
    )
    return procrastinate.App(connector=connector)
