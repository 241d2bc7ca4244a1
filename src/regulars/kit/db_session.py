"""Give every database connection the session settings that our statements depend on.

A role or a database may have other settings (`ALTER ROLE … SET`), and an operator may change them while the server
runs; the settings of a session take precedence over both. Two of them depend on the database: `search_path` names the
schema that has our tables, and `synchronous_commit` may be stronger than our minimum but not weaker.
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
_SESSION_SETTINGS: Final = {
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
_SET_SCHEMA_AND_DURABILITY: Final[LiteralString] = """
SELECT set_config('search_path', quote_ident(our_schema.name), false)
FROM (
    SELECT COALESCE(min(n.nspname) FILTER (WHERE c.oid = to_regclass('migrations')),
        CASE WHEN count(*) = 1 THEN min(n.nspname) END) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'migrations' AND c.relkind IN ('r', 'p')
) AS our_schema
WHERE our_schema.name IS NOT NULL
UNION ALL
SELECT set_config('synchronous_commit', 'on', false)
FROM pg_settings
WHERE name = 'synchronous_commit' AND setting IN ('off', 'local', 'remote_write')
    AND source NOT IN ('default', 'configuration file', 'command line')
"""

# For the short statements that record sales. Planning one takes longer than running it, so each is planned once; a plan
# made while a table was empty must not scan the table later. A cluster (Citus) plans each time, because the values
# decide on which node a statement runs.
FOR_RECORDING: Final[LiteralString] = """
SELECT set_config('enable_seqscan', 'off', false), set_config('plan_cache_mode', CASE
    WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN 'auto' ELSE 'force_generic_plan' END, false)
"""
PLANNED_ON_A_CLUSTER: Final = "auto"


def connect(url: str, *, application_name: str = APPLICATION_NAME) -> psycopg.Connection[TupleRow]:
    """Open an autocommit connection for a command of an operator, without timeouts."""
    connection = psycopg.connect(url, autocommit=True, **arguments(url, application_name=application_name))
    try:
        connection.execute(_SET_SCHEMA_AND_DURABILITY)
    except BaseException:
        connection.close()
        raise
    return connection


def arguments(url: str, *, application_name: str = APPLICATION_NAME, **limits: int) -> dict[str, Any]:
    """Return the connection parameters to use with the URL: its own options, then our settings, then limits such as
    `lock_timeout`.

    The caller runs `set_schema_and_durability` first on the new connection.
    """
    parameters = conninfo_to_dict(url)
    settings = {**_SESSION_SETTINGS, **{name: str(value) for name, value in limits.items()}}
    options = [str(parameters["options"])] if parameters.get("options") else []
    return {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "client_encoding": "UTF8",
        "application_name": application_name,
        "options": " ".join([*options, *(f"-c {name}={value}" for name, value in settings.items())]),
        **KEEPALIVE,
    }


async def set_schema_and_durability(connection: AsyncConnection[Any]) -> None:
    """Set the two settings that depend on the database and so cannot be connection parameters."""
    await connection.execute(_SET_SCHEMA_AND_DURABILITY)
