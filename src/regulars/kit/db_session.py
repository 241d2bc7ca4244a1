"""Session settings that every database connection gets, whatever the settings of the role or the database are.

A role or a database may have settings of its own (`ALTER ROLE … SET`), and an operator may change them while the
server runs. So each connection sets what our statements depend on, which takes precedence over both. Two settings
depend on the database: the schema is the one that holds our tables, and `synchronous_commit` may be stronger than our
minimum but not weaker.
"""

from typing import Any, Final, LiteralString

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

CONNECT_TIMEOUT_S: Final = 5
APPLICATION_NAME: Final = "regulars"
# A dead network is detected after about 12 seconds instead of the system's 15 minutes.
KEEPALIVE: Final = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
_PINNED: Final = {
    "timezone": "UTC",
    "datestyle": "ISO,MDY",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read\\ committed",
    "jit": "off",
}

# The schema is the one in which the role finds the table `migrations`, or else the only one that has such a table; a
# database without one is left as it is. Commits are as durable as the server's own setting: a weaker setting of the
# role, the database or the address is raised to `on`.
_PIN: Final[LiteralString] = """
SELECT set_config('search_path', quote_ident(holder.name), false)
FROM (
    SELECT COALESCE(min(n.nspname) FILTER (WHERE c.oid = to_regclass('migrations')),
        CASE WHEN count(*) = 1 THEN min(n.nspname) END) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'migrations' AND c.relkind IN ('r', 'p')
) AS holder
WHERE holder.name IS NOT NULL
UNION ALL
SELECT set_config('synchronous_commit', 'on', false)
FROM pg_settings
WHERE name = 'synchronous_commit' AND setting IN ('off', 'local', 'remote_write')
    AND source NOT IN ('default', 'configuration file', 'command line')
"""

# For short statements that run all day. Planning one takes longer than running it, so each is planned once, and a plan
# made while a table was empty must not scan it later. A cluster (Citus) plans each time, because the values decide on
# which node a statement runs.
FOR_RECORDING: Final[LiteralString] = """
SELECT set_config('enable_seqscan', 'off', false), set_config('plan_cache_mode', CASE
    WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN 'auto' ELSE 'force_generic_plan' END, false)
"""
PLANNED_ON_A_CLUSTER: Final = "auto"


def connect(url: str, *, application_name: str = APPLICATION_NAME) -> psycopg.Connection[TupleRow]:
    """An autocommit connection for a command, without limits on its statements."""
    connection = psycopg.connect(url, autocommit=True, **arguments(url, application_name=application_name))
    try:
        connection.execute(_PIN)
    except BaseException:
        connection.close()
        raise
    return connection


def arguments(url: str, *, application_name: str = APPLICATION_NAME, **limits: int) -> dict[str, Any]:
    """Connection parameters in addition to the address: the options in the address, then ours, then limits such as
    `lock_timeout`.

    The caller runs `pin` first on the new connection.
    """
    parameters = conninfo_to_dict(url)
    ours = {**_PINNED, **{name: str(value) for name, value in limits.items()}}
    options = [str(parameters["options"])] if parameters.get("options") else []
    return {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "client_encoding": "UTF8",
        "application_name": application_name,
        "options": " ".join([*options, *(f"-c {name}={value}" for name, value in ours.items())]),
        **KEEPALIVE,
    }


async def pin(connection: AsyncConnection[Any]) -> None:
    """Set what depends on the database and cannot be a connection parameter."""
    await connection.execute(_PIN)
