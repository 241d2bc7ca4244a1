"""Count the source lines of each room, without blank lines, comments and docstrings.

`python tests/architecture/source_lines.py [FOLDER]` prints a table; `bin/check` prints its last line.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "regulars"
SHORT_MODULE_LINES = 20
LONG_TEMPLATE_LINE = 160

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


def count_source_lines(source: str) -> int:
    """Count the lines of a Python module that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _find_docstring_lines(ast.parse(source)))


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
    """Print the source lines per room and the totals."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    rooms: Counter[str] = Counter()
    short_modules = 0
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(source).parts
        rooms[parts[0] if len(parts) > 1 else "(top)"] += count_source_lines(text)
        short_modules += path.name != "__init__.py" and len(text.splitlines()) < SHORT_MODULE_LINES
    long_lines = sum(
        len(line) > LONG_TEMPLATE_LINE
        for path in source.rglob("*.html")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    for room, lines in sorted(rooms.items()):
        sys.stdout.write(f"{room:16}{lines:7,}\n")
    sys.stdout.write(
        f"source lines: {rooms.total():,}; modules under {SHORT_MODULE_LINES} lines: {short_modules};"
        f" template lines over {LONG_TEMPLATE_LINE} characters: {long_lines}\n"
    )


if __name__ == "__main__":
    main()
