"""Counts the rows that statements read, with EXPLAIN ANALYZE before each statement runs."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg.sql import Composed

from regulars.kit.db import Tx


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def rows_discarded(plan: dict[str, Any]) -> int:
    """The number of rows that the filters of a statement discard."""
    return sum(int(node.get("Rows Removed by Filter", 0) * node["Actual Loops"]) for node in nodes(plan))


def rows_read(plan: dict[str, Any]) -> int:
    return sum(int(node["Actual Rows"] * node["Actual Loops"]) for node in nodes(plan))


def watch(monkeypatch: pytest.MonkeyPatch, count: Callable[[dict[str, Any]], int] = rows_discarded) -> dict[str, int]:
    """Counts for every statement that runs from now on; the result has the largest count of each."""
    counted: dict[str, int] = {}
    fetch = Tx.fetch

    async def explain(self, query, params=()):
        query = query.as_string(None) if isinstance(query, Composed) else query
        text = " ".join(query.split())
        if text.startswith(("SELECT", "WITH")):
            # ANALYZE runs the statement, which may write.
            async with self.connection.transaction(force_rollback=True):
                cursor = await self.connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query, params)
                [(plans,)] = await cursor.fetchall()
            plan = (json.loads(plans) if isinstance(plans, str) else plans)[0]["Plan"]
            counted[text] = max(count(plan), counted.get(text, 0))
        return await fetch(self, query, params)

    monkeypatch.setattr(Tx, "fetch", explain)
    return counted
