import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
from tests.support.project import ROOT

# A module `queries`, or the modules of a folder `queries`.
QUERIES = re.compile(r"(?P<room>regulars(\.\w+)+)\.queries(\.\w+)?")

# A file, its line, the contract that it breaks, and what the report says of it below the contract's name.
PLANTED = [
    (
        "kit/planted.py",
        "from regulars.sales import model",
        "a lower room never imports a higher one",
        "- regulars.kit.planted -> regulars.sales.model",
    ),
    (
        "planted/__init__.py",
        "",
        "a lower room never imports a higher one",
        "not listed as layers:\n\n- regulars.planted",
    ),
    (
        "sales/planted_leaf.py",
        "from regulars.profiles import api",
        "api, pages, callbacks and jobs are leaves",
        "- regulars.sales.planted_leaf -> regulars.profiles.api",
    ),
    (
        "sales/planted_surface.py",
        "from regulars.http import route",
        "Only surfaces import http",
        "- regulars.sales.planted_surface -> regulars.http.route",
    ),
]


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    return subprocess.run(command, check=False, cwd=project, env=environment, capture_output=True, text=True)


def section_of(report: str, contract: str) -> str:
    """What stands between the line below the contract's name and that below the next one's."""
    below = report.partition(contract)[2]
    return re.split(r"\n-+\n", below)[1] if below else ""


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


def test_planted_violations_are_seen(tmp_path):
    """All in one copy: reading its imports takes longer than the contracts do."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for where, line, _, _ in PLANTED:
        planted = tmp_path / "src" / "regulars" / where
        planted.parent.mkdir(exist_ok=True)
        planted.write_text(f"{line}\n")
    answer = lint_imports(tmp_path)
    assert answer.returncode != 0
    report = answer.stdout.partition("Broken contracts")[2]
    unseen = [where for where, _, contract, found in PLANTED if found not in section_of(report, contract)]
    assert unseen == [], report


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
