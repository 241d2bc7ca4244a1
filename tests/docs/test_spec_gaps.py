"""Every choice that `docs/spec-gaps.md` lists is pinned by a test that exists."""

import ast
import re
from pathlib import Path

from tests.support import syntax

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "spec-gaps.md").read_text(encoding="utf-8")


def test_every_test_it_names_exists() -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)(?:::(test_[a-z0-9_]+))?`", TEXT)
    assert len(named) > 60
    functions: dict[str, set[str]] = {}
    for path, name in named:
        if path not in functions:
            tree = syntax.parse((ROOT / path).read_text(encoding="utf-8"))
            functions[path] = {
                node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
        assert not name or name in functions[path], f"{path}::{name}"


def test_every_choice_names_its_test() -> None:
    rows = [line for line in TEXT.splitlines() if re.match(r"\| [0-9]", line)]
    assert all("`tests/" in row for row in rows)
