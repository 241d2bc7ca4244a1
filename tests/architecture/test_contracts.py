import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from tests.support.project import ROOT

# A module `queries`, or the modules of a folder `queries`.
QUERIES = re.compile(r"(?P<room>regulars(\.\w+)+)\.queries(\.\w+)?")


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    return subprocess.run(command, check=False, cwd=project, env=environment, capture_output=True, text=True)


def breaches_of_privacy(graph: grimp.ImportGraph) -> list[str]:
    return sorted(
        f"{importer} imports {module}"
        for module in graph.modules
        if (match := QUERIES.fullmatch(module))
        for importer in graph.find_modules_that_directly_import(module)
        if not importer.startswith(f"{match['room']}.")
    )


def test_the_import_contracts_hold():
    answer = lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize(
    ("where", "line", "contract"),
    [
        ("kit/planted.py", "from regulars.sales import model", "a lower room never imports a higher one"),
        ("planted/__init__.py", "", "a lower room never imports a higher one"),
        ("sales/planted.py", "from regulars.profiles import api", "api, pages, callbacks and jobs are leaves"),
        ("sales/planted.py", "from regulars.http import route", "Only surfaces import http"),
    ],
)
def test_a_planted_violation_is_seen(tmp_path, where, line, contract):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / "src" / "regulars" / where
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(f"{line}\n")
    answer = lint_imports(tmp_path)
    assert answer.returncode != 0
    report = answer.stdout.partition("Broken contracts")[2]
    assert contract in report
    assert "planted" in report


def test_queries_are_private_to_their_room():
    assert breaches_of_privacy(grimp.build_graph("regulars", cache_dir=None)) == []


def test_the_privacy_rule_sees_a_neighbour():
    graph = grimp.ImportGraph()
    graph.add_import(importer="regulars.sales.record", imported="regulars.sales.queries")
    assert breaches_of_privacy(graph) == []
    graph.add_import(importer="regulars.sales.record", imported="regulars.sales.queries.totals")
    assert breaches_of_privacy(graph) == []
    graph.add_import(importer="regulars.salesroom.record", imported="regulars.sales.queries")
    graph.add_import(importer="regulars.salesroom.record", imported="regulars.sales.queries.totals")
    assert breaches_of_privacy(graph) == [
        "regulars.salesroom.record imports regulars.sales.queries",
        "regulars.salesroom.record imports regulars.sales.queries.totals",
    ]
