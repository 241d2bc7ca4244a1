"""Refuses a PostgreSQL that may lose what it has acknowledged."""

from typing import Any

import psycopg

# `synchronous_commit` has several durable values (local, remote_write, remote_apply): only `off` loses commits.
LOSING_SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


class NotDurableError(Exception):
    """The message is one sentence for the person who runs the server."""


def assert_durable(connection: psycopg.Connection[Any]) -> None:
    losing = losing_settings(connection)
    if losing:
        raise NotDurableError(
            f"This PostgreSQL may lose acknowledged writes in a crash ({', '.join(losing)}); "
            "turn these settings on and start again."
        )


def losing_settings(connection: psycopg.Connection[Any]) -> list[str]:
    """The settings, as `name = value`, under which a crash can take acknowledged writes with it."""
    # What a session starts with, before it raises a weak setting for itself.
    rows = connection.execute(
        "SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s) ORDER BY name", (list(LOSING_SETTINGS),)
    ).fetchall()
    return [f"{name} = {setting}" for name, setting in rows if LOSING_SETTINGS[name] == setting]
