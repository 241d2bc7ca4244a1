"""Measure the code of each room: lines without blank lines, comments and docstrings, how dense they are, long functions.

`python tests/architecture/source_lines.py [FOLDER]` prints a table; `bin/check` prints its last line. A room whose lines
become fewer while characters and statements per line rise was written more densely, not simplified.
"""

import ast
import io
import sys
import tokenize
from collections import defaultdict
from dataclasses import astuple, dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "regulars"
SHORT_MODULE_LINES = 20
LONG_TEMPLATE_LINE = 160
LONG_FUNCTION_LINES = 40

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


@dataclass
class Size:
    """The code of one or several modules."""

    lines: int = 0
    characters: int = 0
    statements: int = 0
    long_functions: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        lines = max(self.lines, 1)
        per_line = f"{self.characters / lines:7.1f}{self.statements / lines:7.2f}"
        return f"{self.lines:8,}{per_line}{self.long_functions:6}"


def measure_module(source: str) -> Size:
    """Measure the lines of a Python module that hold code."""
    module = ast.parse(source)
    lines = _find_code_lines(source) - _find_docstring_lines(module)
    texts = source.splitlines()
    nodes = list(ast.walk(module))
    statements = [node for node in nodes if isinstance(node, ast.stmt) and node.lineno in lines]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Size(
        lines=len(lines),
        characters=sum(len(texts[line - 1].strip()) for line in lines),
        statements=len(statements),
        long_functions=sum((node.end_lineno or 0) - node.lineno + 1 > LONG_FUNCTION_LINES for node in functions),
    )


def _find_code_lines(source: str) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _find_docstring_lines(module: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(module):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def main() -> None:
    """Print the sizes of the rooms and the totals."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    rooms: dict[str, Size] = defaultdict(Size)
    short_modules = 0
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(source).parts
        rooms[parts[0] if len(parts) > 1 else "(top)"] += measure_module(text)
        short_modules += path.name != "__init__.py" and len(text.splitlines()) < SHORT_MODULE_LINES
    long_lines = sum(
        len(line) > LONG_TEMPLATE_LINE
        for path in source.rglob("*.html")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    total = sum(rooms.values(), Size())
    sys.stdout.write(f"{'room':16}   lines  chars  stmts  long   (characters and statements per line; functions over")
    sys.stdout.write(f" {LONG_FUNCTION_LINES} lines)\n")
    for room, size in [*sorted(rooms.items()), ("all", total)]:
        sys.stdout.write(f"{room:16}{size}\n")
    sys.stdout.write(
        f"source lines: {total.lines:,}; {total.characters / total.lines:.1f} characters and"
        f" {total.statements / total.lines:.2f} statements per line; functions over {LONG_FUNCTION_LINES} lines:"
        f" {total.long_functions}; modules under {SHORT_MODULE_LINES} lines: {short_modules};"
        f" template lines over {LONG_TEMPLATE_LINE} characters: {long_lines}\n"
    )


if __name__ == "__main__":
    main()
