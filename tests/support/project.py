"""The folders and files of the project, for the architecture tests."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "regulars"


def tracked_files() -> list[Path]:
    """Tracked and new files of the repository; without git, every file outside the virtual environment."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = (ROOT / name for name in listed.stdout.split("\0") if name)
    else:
        names = (path for path in ROOT.rglob("*") if not any(part.startswith(".venv") for part in path.parts))
    return sorted(path for path in names if path.is_file())


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in statements_in(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def statements_in(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements at any depth, with their `except` and `case`. `ast.walk` also visits every expression, which
    takes far longer."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from statements_in(node)
