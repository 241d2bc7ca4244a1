"""Finds the SQL in source files, and which tables each statement reads and writes, for the architecture tests."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import syntax

FIRST_WORD = re.compile("WITH|SELECT|INSERT|UPDATE|DELETE|MERGE|TRUNCATE|COPY")
STATEMENT = re.compile(r"\s*(WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM|MERGE INTO|TRUNCATE|COPY)\b")
WRITTEN = re.compile(
    r"\bINSERT\s+INTO\s+(\w+)|(?<!FOR )(?<!DO )(?<!KEY )\bUPDATE\s+(?!SET\b)(\w+)|\bDELETE\s+FROM\s+(\w+)"
    r"|\bMERGE\s+INTO\s+(\w+)|\bTRUNCATE\s+(?:TABLE\s+)?(\w+)|\bCOPY\s+(\w+)"
)
NAMED = re.compile(r"\b(?:FROM|JOIN|INTO|(?<!FOR )UPDATE|USING)\s+(\w+)")


@dataclass(frozen=True)
class Statement:
    """All SQL of one function or constant; the style asks for one statement each."""

    file: Path
    name: str
    text: str

    def tables_written(self) -> set[str]:
        return {name for groups in WRITTEN.findall(self.text) for name in groups if name}

    def tables_named(self) -> list[str]:
        return NAMED.findall(self.text)


def statements(file: Path, source: str) -> Iterator[Statement]:
    # Most files have none, and a search costs far less than a parse.
    if not FIRST_WORD.search(source):
        return
    tree = syntax.parse(source)
    constants = {
        target.id: _texts(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for name, texts in constants.items():
        if any(map(STATEMENT.match, texts)):
            yield Statement(file, name, "\n".join(texts))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            own = _texts(function)
            if any(map(STATEMENT.match, own)):
                # Statements may share a filter or a list of columns in a constant of the module.
                shared = [
                    text
                    for node in ast.walk(function)
                    if isinstance(node, ast.Name)
                    for text in constants.get(node.id, [])
                ]
                yield Statement(file, function.name, "\n".join([*own, *shared]))


def _texts(node: ast.AST) -> list[str]:
    """All string literals except docstrings, in source order."""
    docstrings = {
        id(inner.body[0].value)
        for inner in ast.walk(node)
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and isinstance(inner.body[0], ast.Expr)
    }
    return [
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and id(inner) not in docstrings
    ]
