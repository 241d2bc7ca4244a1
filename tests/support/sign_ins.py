"""Tests share an IP address, from which only so many sign-ins may fail in fifteen minutes."""

import psycopg


def forget_failed_sign_ins(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM sign_in_failures WHERE subject LIKE 'address %'")
