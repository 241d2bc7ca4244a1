"""Chooses one-line changes of the package by a seed: the mutants.

A mutant's key is a hash of its file, its function's text and the change. The sample is the smallest hashes of seed and
key, so that a change of one function leaves the mutants of all others in the sample.
"""

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef

# The kinds of changes, and how many of 20 mutants are of each kind.
SHARES: Final = {
    "negated condition": 5,
    "swapped comparison": 5,
    "off by one": 4,
    "dropped statement": 4,
    "removed organization": 2,
}
SWAPS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
# A negated condition is the same change as these swaps.
EQUALITIES: Final = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
# Log lines are for people, and a failpoint does nothing outside the crash tests.
UNTESTED_CALLS: Final = ("_log.", "failpoint.")
# Of a condition on a parameter the parameter stays, because it is counted.
ORGANIZATION: Final = re.compile(
    r"(?:\w+\.)?\borganization_id = (?:(?P<parameter>%s|%\(\w+\)s)(?!::)|\w+\.organization_id\b)"
)


@dataclass(frozen=True, slots=True)
class Mutant:
    key: str
    path: str  # from the root of the project, with /
    line: int
    kind: str
    before: str
    after: str
    # The lines whose tests can notice the change; none: all tests of the room.
    reached_from: tuple[int, ...]

    @property
    def room(self) -> str:
        parts = self.path.removeprefix("src/regulars/").split("/")
        return parts[0] if len(parts) > 1 else "(roots)"


@dataclass(frozen=True, slots=True)
class Change:
    kind: str
    line: int
    start: int  # in bytes of UTF-8, as in the syntax tree
    end: int
    replacement: str


def choose(root: Path, *, seed: int, count: int, rooms: Sequence[str] = ()) -> list[Mutant]:
    """Returns `count` mutants of the package, or fewer if there are no more, in the order of their draw."""
    found: dict[str, list[tuple[str, Mutant]]] = {kind: [] for kind in SHARES}
    for path in sorted((root / "src" / "regulars").rglob("*.py")):
        for mutant in find_mutants(path.read_text(), path.relative_to(root).as_posix()):
            if not rooms or mutant.room in rooms:
                found[mutant.kind].append((_hash(str(seed), mutant.key), mutant))
    drawn = []
    for kind, candidates in found.items():
        quota = -(-count * SHARES[kind] // sum(SHARES.values()))
        drawn += sorted(candidates, key=lambda each: each[0])[:quota]
    return [mutant for _order, mutant in sorted(drawn, key=lambda each: each[0])[:count]]


def find_mutants(source: str, path: str) -> Iterator[Mutant]:
    """All mutants of a module: of its functions and, for numbers and SQL, of its constants."""
    tree = ast.parse(source)
    lines = source.split("\n")
    for function in _outermost_functions(tree):
        text = "\n".join(lines[function.lineno - 1 : function.end_lineno])
        for change in _changes_in(function.body, lines):
            yield _mutant(change, lines, path, text, first=function.lineno, reached_from=(change.line,))
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            text = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
            numbers = _shifted_numbers(statement.value) if isinstance(statement.value, ast.Constant) else ()
            if changes := [*numbers, *_removed_organizations(statement.value, lines)]:
                named = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                names = {node.id for node in named if isinstance(node.ctx, ast.Store)}
                reached_from = _lines_naming(tree, names)
                for change in changes:
                    yield _mutant(change, lines, path, text, first=statement.lineno, reached_from=reached_from)


def apply(mutant: Mutant, source: str) -> str:
    """The module's text with the mutant's line; all other bytes stay."""
    lines = source.split("\n")
    if lines[mutant.line - 1] != mutant.before:
        raise ValueError(f"{mutant.path}:{mutant.line} is not the line of mutant {mutant.key}")
    lines[mutant.line - 1] = mutant.after
    return "\n".join(lines)


def _mutant(
    change: Change, lines: list[str], path: str, text: str, *, first: int, reached_from: tuple[int, ...]
) -> Mutant:
    before = lines[change.line - 1]
    raw = before.encode()
    after = (raw[: change.start] + change.replacement.encode() + raw[change.end :]).decode()
    key = _hash(path, text, str(change.line - first), after)[:10]
    return Mutant(key, path, change.line, change.kind, before, after, reached_from)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _outermost_functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
            yield from _outermost_functions(node)


def _lines_naming(tree: ast.Module, names: set[str]) -> tuple[int, ...]:
    """The lines of functions that use one of the names."""
    return tuple(
        sorted(
            {
                node.lineno
                for function in _outermost_functions(tree)
                for statement in function.body
                for node in _walk(statement)
                if isinstance(node, ast.Name) and node.id in names
            }
        )
    )


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """`ast.walk` without annotations and decorators, and without f-strings, whose inner positions are wrong in 3.11."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(value, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _walk(child)


def _changes_in(body: list[ast.stmt], lines: list[str]) -> Iterator[Change]:
    conditions: set[ast.AST] = set()
    for statement in body:
        for node in _walk(statement):
            if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
                conditions.add(node.test)
                if node.test.lineno == node.test.end_lineno:
                    text = _text(lines, node.test.lineno, node.test.col_offset, node.test.end_col_offset or 0)
                    yield _replace("negated condition", node.test, f"not ({text})")
            elif isinstance(node, ast.Compare):
                yield from _swapped_comparisons(node, lines, is_condition=node in conditions)
            elif isinstance(node, ast.stmt) and _can_drop(node, lines):
                yield _replace("dropped statement", node, "pass")
        yield from _shifted_numbers(statement)
        yield from _removed_organizations(statement, lines)


def _text(lines: list[str], line: int, start: int, end: int) -> str:
    return lines[line - 1].encode()[start:end].decode()


def _replace(kind: str, node: ast.expr | ast.stmt, replacement: str) -> Change:
    return Change(kind, node.lineno, node.col_offset, node.end_col_offset or 0, replacement)


def _swapped_comparisons(node: ast.Compare, lines: list[str], *, is_condition: bool) -> Iterator[Change]:
    for operator, left, right in zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False):
        if left.end_lineno != right.lineno or (
            is_condition and len(node.ops) == 1 and isinstance(operator, EQUALITIES)
        ):
            continue
        between = _text(lines, right.lineno, left.end_col_offset or 0, right.col_offset)
        old, new = SWAPS[type(operator)]
        if between.count(old) == 1:
            start, end = left.end_col_offset or 0, right.col_offset
            yield Change("swapped comparison", right.lineno, start, end, between.replace(old, new))


def _can_drop(node: ast.stmt, lines: list[str]) -> bool:
    """Whether a statement fits on a line, and the module still compiles and names what it needs without it."""
    if node.lineno != node.end_lineno:
        return False
    if isinstance(node, ast.Expr):
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        return isinstance(call, ast.Call) and not ast.unparse(call.func).startswith(UNTESTED_CALLS)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    if isinstance(node, ast.Return):
        return node.value is None
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete)


def _shifted_numbers(tree: ast.AST) -> Iterator[Change]:
    for node in _walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.end_col_offset is not None:
            yield _replace("off by one", node, str(node.value + 1))


def _removed_organizations(tree: ast.AST, lines: list[str]) -> Iterator[Change]:
    for node in _walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "organization_id = " in node.value:
            for line in range(node.lineno, (node.end_lineno or 0) + 1):
                for match in ORGANIZATION.finditer(lines[line - 1]):
                    start = len(lines[line - 1][: match.start()].encode())
                    parameter = match["parameter"]
                    always = f"{parameter}::uuid IS NOT NULL" if parameter else "TRUE"
                    yield Change("removed organization", line, start, start + len(match[0].encode()), always)
        elif isinstance(node, ast.keyword) and node.arg == "organization_id" and node.lineno == node.end_lineno:
            yield from _removed_argument(node, lines)


def _removed_argument(node: ast.keyword, lines: list[str]) -> Iterator[Change]:
    rest = lines[node.lineno - 1].encode()[node.end_col_offset :]
    comma = re.match(rb",\s*", rest)
    yield Change(
        "removed organization",
        node.lineno,
        node.col_offset,
        (node.end_col_offset or 0) + (comma.end() if comma else 0),
        "",
    )
