"""Compiles the package with probes, which record in a shared file which suites of its functions run.

A probe is a store of one byte. All processes that import the package share the bytes: servers, workers, forked and
killed ones. So the lines that a server runs for a test are known at the end of that test. The source stays as it is;
the probes are in the bytecode files beside it.
"""

import ast
import importlib.util
import marshal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

NAME: Final = "__reached__"
COMPOUND: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
OPEN: Final = f"""
import mmap as __mmap__
with open({{path!r}}, "r+b") as {NAME}:
    {NAME} = __mmap__.mmap({NAME}.fileno(), 0)
"""
IMPORT: Final = f"from regulars import {NAME}"

# By path from the root of the project: the probe of each line of a function.
ProbesByLine = dict[str, dict[int, int]]


def number_probes(root: Path) -> ProbesByLine:
    """The probes of the package, without compiling it: the same source has the same numbers."""
    probes: ProbesByLine = {}
    for path, _tree, by_line in _modules(root):
        probes[path.relative_to(root).as_posix()] = by_line
    return probes


def compile_with_probes(root: Path, shared: Path) -> None:
    """Writes the bytecode files of the package in `root`; their probes are bytes of the file `shared`."""
    last = 0
    for path, tree, by_line in _modules(root):
        last = max(last, *by_line.values(), 0)
        is_root = path == root / "src" / "regulars" / "__init__.py"
        opening = ast.parse(OPEN.format(path=str(shared)) if is_root else IMPORT).body
        at = 1 if ast.get_docstring(tree, clean=False) is not None else 0
        tree.body[at:at] = opening
        _write_bytecode(path, compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True))
    shared.write_bytes(bytes(last + 1))


def remove_bytecode(root: Path) -> None:
    for path in (root / "src" / "regulars").rglob("*.pyc"):
        path.unlink()


def _modules(root: Path) -> Iterator[tuple[Path, ast.Module, dict[int, int]]]:
    """Every module with its tree, which has probes, and their numbers by line."""
    first = 0
    for path in sorted((root / "src" / "regulars").rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        adding = _Adding(first)
        adding.module(tree)
        first = adding.next
        yield path, tree, adding.by_line


def _write_bytecode(path: Path, code: object) -> None:
    """A bytecode file of the format that Python compares with the time and size of the source."""
    stat = path.stat()
    target = Path(importlib.util.cache_from_source(str(path)))
    target.parent.mkdir(exist_ok=True)
    header = importlib.util.MAGIC_NUMBER + bytes(4)
    times = (int(stat.st_mtime) & 0xFFFF_FFFF).to_bytes(4, "little") + (stat.st_size & 0xFFFF_FFFF).to_bytes(
        4, "little"
    )
    target.write_bytes(header + times + marshal.dumps(code))


class _Adding:
    """Adds a probe to the start of each suite inside functions, and after each statement that may leave the suite."""

    def __init__(self, first: int) -> None:
        self.next = first
        self.by_line: dict[int, int] = {}

    def module(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                self._suites(child)
            elif isinstance(child, ast.stmt | ast.excepthandler):
                self.module(child)

    def _suites(self, node: ast.AST) -> None:
        for _name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                value[:] = self._with_probes(value)
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.excepthandler | ast.match_case):
                        self._suites(child)

    def _with_probes(self, suite: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        needs_probe = True
        current = 0
        for statement in suite:
            if self._must_come_first(statement):
                result.append(statement)
                continue
            if needs_probe:
                current = self.next
                result.append(self._probe(statement))
            needs_probe = isinstance(statement, COMPOUND)
            result.append(statement)
            for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                self.by_line[line] = current
            if isinstance(statement, ast.ClassDef):
                self.module(statement)
            else:
                self._suites(statement)
        return result

    @staticmethod
    def _must_come_first(statement: ast.stmt) -> bool:
        """Docstrings, and declarations of names."""
        if isinstance(statement, ast.Global | ast.Nonlocal):
            return True
        return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)

    def _probe(self, statement: ast.stmt) -> ast.stmt:
        probe = ast.parse(f"{NAME}[{self.next}] = 1").body[0]
        for node in ast.walk(probe):
            ast.copy_location(node, statement)
        self.next += 1
        return probe
