"""Tests wait for facts: a fixed sleep is too short on a busy machine and too long on all others."""

import ast
from collections.abc import Iterator

import pytest
from tests.support import syntax
from tests.support.project import ROOT, python_files

# So long that only its interruption ends it.
ENDLESS_S = 60
# Files of this folder, by the reason why they sleep for a fixed time.
ALLOWED = {
    "the moment and the length of a fault or of traffic are part of the trial": (
        "crash/faults.py",
        "crash/lifecycle_faults.py",
        "crash/load_sender.py",
        "crash/planted_bugs.py",
        "crash/trial.py",
        "support/migration_nodes.py",
    ),
    "time that passes is what is tested": (
        "acceptance/test_slow_bodies.py",
        "campaigns/test_races.py",
        "kit/test_db.py",
        "kit/test_ids.py",
        "sales/test_quick.py",
        "sales/test_totals_fill.py",
        "work/test_gathering.py",
    ),
    "what must not happen gets the time to happen": ("kit/test_coalesce_together.py",),
    "a backend that was stopped shows nothing of what it gets": ("crash/test_never_stuck.py",),
    "a stand-in takes as long as what it stands for": (
        "texts/fake_twilio.py",
        "work/test_claims.py",
    ),
    "one step of a loop that waits": ("columns/fed_shop.py", "support/drain_queues.py"),
    "a tool that makes pictures, not a test": ("support/screenshots.py",),
}


def fixed_sleeps(source: str) -> list[int]:
    """The lines of sleeps of a fixed time; a `while` loop around one waits for a fact, and zero only yields."""
    return sorted(_find_sleeps(syntax.parse(source), is_in_loop=False))


def _find_sleeps(node: ast.AST, *, is_in_loop: bool) -> Iterator[int]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        is_in_loop = False
    if not is_in_loop and isinstance(node, ast.Call) and _is_fixed_sleep(node):
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from _find_sleeps(child, is_in_loop=is_in_loop or isinstance(node, ast.While))


def _is_fixed_sleep(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "sleep":
        return False
    seconds = call.args[0]
    if isinstance(seconds, ast.Constant):
        return 0 < seconds.value < ENDLESS_S
    return not (isinstance(seconds, ast.Name) and seconds.id == "inf")


def test_no_test_sleeps_for_a_fixed_time_without_a_reason() -> None:
    found = {str(path.relative_to(ROOT / "tests")): fixed_sleeps(path.read_text()) for path in python_files("tests")}
    sleeping = {path: lines for path, lines in found.items() if lines}
    allowed = {path for paths in ALLOWED.values() for path in paths}
    assert {path: lines for path, lines in sleeping.items() if path not in allowed} == {}
    assert allowed - sleeping.keys() == set(), "these files no longer sleep"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("time.sleep(0.5)", [1]),
        ("async def f():\n    await asyncio.sleep(PAUSE_S)", [2]),
        ("for number in range(3):\n    time.sleep(1)", [2]),
        ("while True:\n    def f():\n        time.sleep(1)", [3]),
        ("while not found():\n    time.sleep(0.01)", []),
        ("async def f():\n    await asyncio.sleep(0)\n    await asyncio.sleep(3600)\n    await asyncio.sleep(inf)", []),
    ],
)
def test_the_rule_sees_fixed_sleeps(source: str, lines: list[int]) -> None:
    assert fixed_sleeps(source) == lines
