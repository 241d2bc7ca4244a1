"""Inspect a Citus cluster: PostgreSQL that distributes the tables by organization over nodes behind a coordinator."""

from typing import Any, Final, LiteralString, NamedTuple

import psycopg

IS_CLUSTER: Final[LiteralString] = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
# Queries all nodes at the same time. An unreachable node returns a row with `success` false, not an error.
_NODES: Final[LiteralString] = """
SELECT n.nodename, n.nodeport, COALESCE(a.success, false), a.result
FROM pg_dist_node AS n
LEFT JOIN run_command_on_all_nodes(
    $$ SELECT concat_ws(' ', current_setting('server_version'), e.extversion, extract(epoch FROM clock_timestamp()))
       FROM pg_extension AS e WHERE e.extname = 'citus' $$,
    give_warning_for_connection_errors := true
) AS a ON a.nodeid = n.nodeid
WHERE n.noderole = 'primary'
ORDER BY n.nodename, n.nodeport
"""
_UNDISTRIBUTED_TABLES: Final[LiteralString] = """
SELECT c.relname
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'organization_id' AND NOT a.attisdropped
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT EXISTS (SELECT FROM pg_dist_partition AS d WHERE d.logicalrelid = c.oid)
ORDER BY 1
"""
# Tables that stay on the coordinator: those that a request reads before its organization is known, those of users, who
# may belong to several organizations, and those of the installation.
LOCAL_TABLES: Final = frozenset(
    {
        "api_keys",
        "link_prefixes",
        "memberships",
        "migrations",
        "organization_slugs",
        "organizations",
        "public_address",
        "recovery_codes",
        "restore_marker",
        "sessions",
        "sign_in_failures",
        "sign_in_links",
        "sign_in_places",
        "users",
        "vault_key",
    }
)


class ClusterNode(NamedTuple):
    """A node, its versions of PostgreSQL and Citus, and by how much its clock differs from the coordinator's."""

    name: str
    is_reachable: bool
    versions: str
    clock_off_s: float


def find_nodes(connection: psycopg.Connection[Any]) -> list[ClusterNode]:
    before = _read_clock(connection)
    rows = connection.execute(_NODES).fetchall()
    after = _read_clock(connection)
    return [_node_of(f"{name}:{port}", reachable, result, (before, after)) for name, port, reachable, result in rows]


def find_undistributed_tables(connection: psycopg.Connection[Any]) -> list[str]:
    """Tables with an `organization_id` that should be distributed over the nodes, but are not."""
    rows = connection.execute(_UNDISTRIBUTED_TABLES).fetchall()
    return [name for (name,) in rows if name not in LOCAL_TABLES]


def _node_of(name: str, is_reachable: bool, result: str | None, queried_between: tuple[float, float]) -> ClusterNode:
    if not is_reachable or result is None:
        return ClusterNode(name, is_reachable=False, versions="", clock_off_s=0.0)
    versions, _, clock_text = result.rpartition(" ")
    clock = float(clock_text)
    before, after = queried_between
    return ClusterNode(name, is_reachable=True, versions=versions, clock_off_s=max(before - clock, clock - after, 0.0))


def _read_clock(connection: psycopg.Connection[Any]) -> float:
    [(seconds,)] = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchall()
    return float(seconds)
