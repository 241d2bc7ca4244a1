"""Finds every SQL statement of the package, and plans it for an organization that is not in the statistics."""

import ast
import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, LiteralString, cast
from uuid import uuid4

from psycopg import Connection, sql
from tests.support import syntax
from tests.support.project import PACKAGE

from regulars.attribution.month_tables import MonthTables
from regulars.kit import connection as kit_connection
from regulars.kit.columns import fill, names_of
from regulars.kit.referenced_table import ReferenceLookup

# The position of the statement in the arguments of a call.
CALLS = {"fetch_all": 1, "fetch_first": 1} | dict.fromkeys(
    ("fetch", "fetch_column", "fetch_value", "fetch_map", "fetch_count", "execute", "change"), 0
)
STATEMENT = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")
# What makes an object that holds statements.
HOLDERS = re.compile(r"= (?:ReferenceLookup|ReferencedTable|MonthTables)\b")
# A value per parameter type; a list of ids has several, so that the planner sees a list.
SAMPLES = {
    "uuid": f"'{uuid4()}'",
    "uuid[]": f"ARRAY[{', '.join(f'{chr(39)}{uuid4()}{chr(39)}::uuid' for _ in range(20))}]",
    "text": "'x'",
    "text[]": "ARRAY['x', 'y', 'z']",
    "integer": "100",
    "integer[]": "ARRAY[1, 2, 3]",
    "bigint": "100",
    "bigint[]": "ARRAY[1, 2, 3]::bigint[]",
    "smallint": "1",
    "smallint[]": "ARRAY[1]::smallint[]",
    "double precision[]": "ARRAY[0.5]::float8[]",
    "boolean": "true",
    "boolean[]": "ARRAY[true]",
    "timestamp with time zone": "now()",
    "timestamp with time zone[]": "ARRAY[now()]",
    "date": "current_date",
    "date[]": "ARRAY[current_date]",
    "bytea": r"'\x00'",
    "bytea[]": r"ARRAY['\x00'::bytea, '\x01'::bytea]",
    "json": "'[]'",
    "json[]": "ARRAY['[]'::json]",
    "jsonb": "'[]'",
    "numeric": "1",
    "double precision": "1",
    "interval": "interval '1 day'",
}


@dataclass(frozen=True)
class Statement:
    place: str
    text: str


def all_statements() -> Iterator[Statement]:
    """Statements that consist of constants."""
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = syntax.parse(file.read_text())
        if not any(isinstance(node, ast.Call) for node in ast.walk(tree)):
            continue
        name = ".".join(["regulars", *file.relative_to(PACKAGE).with_suffix("").parts])
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for call in ast.walk(function):
                place = CALLS.get(getattr(call.func, "attr", "")) if isinstance(call, ast.Call) else None
                if place is not None and len(call.args) > place:
                    text = _text(call.args[place], name)
                    if text is not None and STATEMENT.match(text):
                        if place:
                            text = fill(text, columns=names_of(_value(call.args[0], name)))
                        yield Statement(f"{name}.{function.name}", text)
    for module, name, text in held_statements():
        yield Statement(f"{module}.{name}", text)


def held_statements() -> Iterator[tuple[str, str, str]]:
    """Statements that an object of a module holds, such as those of a `ReferencedTable`: the module, a name, the text."""
    held = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        if "kit" in file.parts or not HOLDERS.search(file.read_text()):
            continue
        module = ".".join(["regulars", *file.relative_to(PACKAGE).with_suffix("").parts])
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, ReferenceLookup | MonthTables) and id(value) not in held:
                held.add(id(value))
                for attribute, text in vars(value).items():
                    if isinstance(text, str) and STATEMENT.match(text):
                        yield module, f"{name}.{attribute}", text.replace("{mode}", "UPDATE")


def _text(expression: ast.expr, module: str) -> str | None:
    if not isinstance(expression, ast.Constant | ast.Name | ast.BinOp | ast.Call):
        return None
    try:
        found = _value(expression, module)
    except Exception:  # noqa: BLE001  # it names what only a running function knows
        return None
    if isinstance(found, sql.Composable):
        found = found.as_string(None)
    return found if isinstance(found, str) else None


def _value(expression: ast.expr, module: str) -> Any:
    code = compile(ast.Expression(expression), module, "eval")
    return eval(code, vars(importlib.import_module(module)))  # noqa: S307  # constants of our own modules


def plan(connection: Connection[Any], statement: Statement) -> dict[str, Any]:
    """The plan with values that are in no statistics."""
    text = kit_connection._parse_query(statement.text).text
    connection.execute("DEALLOCATE ALL")
    connection.execute(cast("LiteralString", f"PREPARE planned AS {text}"))
    row = connection.execute("SELECT parameter_types::text[] FROM pg_prepared_statements").fetchone()
    assert row is not None
    values = ", ".join(SAMPLES[kind] for kind in row[0])
    given = f"EXPLAIN (FORMAT JSON) EXECUTE planned{f' ({values})' if values else ''}"
    found = connection.execute(cast("LiteralString", given)).fetchone()
    assert found is not None
    plans = found[0]
    return (json.loads(plans) if isinstance(plans, str) else plans)[0]["Plan"]
