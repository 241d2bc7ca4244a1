import json
import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.mutants.choose import Mutant, apply, choose, find_mutants
from tests.mutants.judge import START, Judgement, Outcome, find_unreliable, judge
from tests.mutants.plan import find_probes, plan_tests
from tests.mutants.probes import compile_with_probes, number_probes
from tests.mutants.reach import Reach, read_records, record_files
from tests.mutants.report import read_equal, show
from tests.mutants.slot import Slot

MUTANTS = Path(__file__).parent
PRICES = """\
LIMIT = 30

def price(items: int) -> int:
    if items >= 10 and "é":  # a comment stays
        return items * 9
    return items * LIMIT
"""
SQL = '''\
async def find(tx, organization_id):
    return await tx.fetch(
        """
        SELECT id FROM stores s JOIN sales t ON t.organization_id = s.organization_id
        WHERE s.organization_id = %(organization_id)s AND id > 1
        """,
        {"organization_id": organization_id},
    )
'''


def changes(source, path="src/regulars/shop/prices.py"):
    return {(each.kind, each.line, each.after.strip()) for each in find_mutants(source, path)}


def test_a_condition_is_negated_and_a_comparison_and_a_number_are_shifted():
    assert changes(PRICES) == {
        ("off by one", 1, "LIMIT = 31"),
        ("negated condition", 4, 'if not (items >= 10 and "é"):  # a comment stays'),
        ("swapped comparison", 4, 'if items > 10 and "é":  # a comment stays'),
        ("off by one", 4, 'if items >= 11 and "é":  # a comment stays'),
        ("off by one", 5, "return items * 10"),
    }


def test_the_condition_on_the_organization_is_removed_from_sql():
    assert {each for each in changes(SQL) if each[0] == "removed organization"} == {
        ("removed organization", 4, "SELECT id FROM stores s JOIN sales t ON TRUE"),
        ("removed organization", 5, "WHERE %(organization_id)s::uuid IS NOT NULL AND id > 1"),
    }


@pytest.mark.parametrize(
    ("statement", "dropped"),
    [
        ("await save(tx)", True),
        ("self.total += 1", True),
        ("raise ValueError(name)", True),
        ("total = 1", False),
        ('_log.warning("late")', False),
        ('failpoint.hit("write.committed")', False),
        ("return total", False),
    ],
)
def test_a_statement_is_dropped_if_the_names_after_it_stay_and_more_than_a_log_line_is_lost(statement, dropped):
    kinds = {kind for kind, _line, _after in changes(f"async def act():\n    {statement}\n")}
    assert ("dropped statement" in kinds) is dropped


def test_an_annotation_a_decorator_and_an_f_string_stay():
    source = """\
    class Shop:
        @cached(20)
        def find(self, kind: Literal[1]) -> str:
            price: Literal[2] = kind
            return f"{price:>30}{self.tax(4) if price else 5}"
    """
    assert changes(dedent(source)) == set()


def test_a_change_keeps_every_other_line():
    lines = PRICES.split("\n")
    for mutant in find_mutants(PRICES, "src/regulars/shop/prices.py"):
        changed = apply(mutant, PRICES).split("\n")
        differing = [number for number, (old, new) in enumerate(zip(lines, changed, strict=True), 1) if old != new]
        assert differing == [mutant.line]


def test_a_change_of_one_function_leaves_the_keys_of_the_others():
    def keys(source):
        return {each.key for each in find_mutants(source, "src/regulars/shop/prices.py")}

    tax = "\n\ndef tax(amount: int) -> int:\n    return amount * 7\n"
    assert keys("# A new first line.\n" + PRICES + tax) == keys(PRICES + tax) > keys(PRICES)
    of_changed = keys(PRICES.replace("items * 9", "items * 8") + tax)
    assert of_changed & keys(PRICES + tax) == keys("LIMIT = 30\n" + tax)


TESTS_OF_PRICES = """
import os
import signal
import subprocess
import sys

import pytest
from regulars.shop.prices import price, unused

@pytest.fixture(scope="module")
def price_of_one():
    return price(1)

def test_it_multiplies(price_of_one):
    assert price_of_one == 30

def test_it_multiplies_again(price_of_one):
    assert price_of_one == 30

def test_a_killed_process_reaches_lines_too():
    pid = os.fork()
    if pid == 0:
        price(20)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

def test_a_process_without_its_environment_reaches_lines_too():
    code = "import sys; sys.path.insert(0, 'src'); from regulars.shop import prices; prices.price(20)"
    subprocess.run([sys.executable, "-c", code], check=True, env={})

def test_it_reaches_nothing():
    pass

def test_it_fails():
    assert not unused()
"""
LOOP = """
def unused() -> bool:
    return True

def wait(items: int) -> None:
    while items > 0:
        items -= 1
"""


@pytest.fixture(scope="module")
def slot(tmp_path_factory) -> Slot:
    """A slot with a small package of the name of ours, and without a database."""
    root = tmp_path_factory.mktemp("slot") / "project"
    shop = root / "src" / "regulars" / "shop"
    shop.mkdir(parents=True)
    (root / "tests" / "shop").mkdir(parents=True)
    (root / "tests" / "mutants").symlink_to(MUTANTS)
    (shop.parent / "__init__.py").write_text('"""Shops."""\n')
    (shop / "__init__.py").touch()
    (shop / "prices.py").write_text(PRICES + LOOP)
    (root / "tests" / "shop" / "test_prices.py").write_text(TESTS_OF_PRICES)
    return Slot(root, ("-p", "pytest_timeout"), {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, sys.executable)


@pytest.fixture(scope="module")
def records(slot) -> list[dict]:
    compile_with_probes(slot.root, slot.root.parent / "reached")
    code, records = record_files(slot, ["tests/shop/test_prices.py"])
    assert code == 1, slot.log.read_text()
    return [json.loads(line) for line in records.splitlines()]


def mutant_of(slot, after) -> Mutant:
    [found] = [mutant for mutant in choose(slot.root, seed=1, count=99) if mutant.after.strip() == after]
    return found


def find_tests(slot, records, after) -> set[str]:
    reached = find_probes(mutant_of(slot, after), number_probes(slot.root))
    return {test.test.partition("::test_")[2] for test in read_records(records, reached)[0] if test.probes}


def test_the_tests_that_reach_a_line_are_known_in_every_process_and_by_every_shared_fixture(slot, records):
    assert find_tests(slot, records, "return items * 10") == {
        "a_killed_process_reaches_lines_too",
        "a_process_without_its_environment_reaches_lines_too",
    }
    assert find_tests(slot, records, "LIMIT = 31") == {"it_multiplies", "it_multiplies_again"}
    assert find_tests(slot, records, "while items >= 0:") == set()


def test_a_test_that_fails_without_a_mutant_kills_none(slot, records):
    assert find_tests(slot, records, "LIMIT = 31")
    assert not [each for each in records if each["test"].endswith("it_fails")]


def judge_alone(slot, mutant, tests) -> Judgement:
    runs = [[Reach(f"tests/shop/test_prices.py::test_{test}", 0.0, frozenset(), 1) for test in tests]]
    return judge(slot, mutant, 0, runs, is_whole=True)


@pytest.mark.parametrize(
    ("after", "outcome", "killer"),
    [
        ("LIMIT = 31", Outcome.DAILY, "tests/shop/test_prices.py::test_it_multiplies"),
        ("return items * 10", Outcome.SURVIVED, ""),
    ],
)
def test_a_planted_mutant_is_noticed_by_a_test_that_looks_at_its_result(slot, after, outcome, killer):
    source = (slot.root / mutant_of(slot, after).path).read_bytes()
    tests = ["a_killed_process_reaches_lines_too", "it_multiplies"]
    judgement = judge_alone(slot, mutant_of(slot, after), tests)
    assert (judgement.outcome, judgement.killer) == (outcome, killer), slot.log.read_text()
    assert (slot.root / judgement.mutant.path).read_bytes() == source


def test_a_mutant_with_which_the_tests_do_not_start_is_killed(slot):
    mutant = Mutant("key", "src/regulars/shop/__init__.py", 1, "off by one", "", "1 / 0", ())
    (slot.root / mutant.path).write_text("\n")
    assert judge_alone(slot, mutant, ["it_multiplies"]).killer == START
    assert judge_alone(slot, mutant_of(slot, "return items * 10"), ["it_multiplies"]).outcome is Outcome.SURVIVED


def test_a_killer_that_fails_without_the_mutant_as_well_is_found(slot):
    tests = [
        Reach(f"tests/shop/test_prices.py::test_{name}", 0.0, frozenset(), 1) for name in ("it_fails", "it_multiplies")
    ]
    assert find_unreliable(slot, tests) == {"tests/shop/test_prices.py::test_it_fails"}


def reach_of(test, seconds=0.1, *, probes=(5,), total=100) -> Reach:
    return Reach(test, seconds, frozenset(probes), total)


def planned(tests, *, reached=(5,), imported=(), seconds_max=9.0, kind="off by one"):
    mutant = Mutant("key", "src/regulars/stores/find.py", 1, kind, "", "", (1,))
    runs, left_out = plan_tests(mutant, set(reached), tests, frozenset(imported), seconds_max=seconds_max)
    return [test.test for run in runs for test in run], [test.test for test in left_out]


def test_short_tests_of_the_room_that_reach_little_run_first():
    tests = [
        reach_of("tests/kit/test_a.py::test_short"),
        reach_of("tests/stores/test_b.py::test_wide", total=1000),
        reach_of("tests/stores/test_c.py::test_long", 8.0),
        reach_of("tests/stores/test_d.py::test_short"),
        reach_of("tests/stores/test_e.py::test_elsewhere", probes=(6,)),
    ]
    first = ["tests/stores/test_d.py::test_short", "tests/kit/test_a.py::test_short"]
    assert planned(tests) == ([*first, "tests/stores/test_b.py::test_wide", "tests/stores/test_c.py::test_long"], [])


def test_what_exceeds_the_time_is_left_out():
    tests = [reach_of("tests/stores/test_d.py::test_short"), reach_of("tests/stores/test_c.py::test_long", 9.0)]
    assert planned(tests) == ([tests[0].test], [tests[1].test])


def test_the_tests_of_the_room_run_for_a_constant_without_lines_and_for_what_imports_reach():
    tests = [reach_of("tests/stores/test_a.py::test_b", probes=()), reach_of("tests/kit/test_a.py::test_b", probes=())]
    assert planned(tests, reached=()) == planned(tests, imported=(5,)) == (["tests/stores/test_a.py::test_b"], [])
    assert planned(tests) == ([], [])


def test_the_tests_of_sql_run_for_a_removed_organization():
    tests = [reach_of("tests/architecture/test_statements.py::test_all", probes=())]
    assert planned(tests, kind="removed organization") == ([tests[0].test], [])


def test_the_report_counts_equal_mutants_apart_and_lists_survivors():
    mutants = [Mutant(key, "src/regulars/stores/find.py", 7, "off by one", " a = 1", " a = 2", (7,)) for key in "abcde"]
    outcomes = [Outcome.DAILY, Outcome.DAILY, Outcome.WHOLE, Outcome.SURVIVED, Outcome.SURVIVED]
    judgements = [Judgement(mutant, outcome, tests=3) for mutant, outcome in zip(mutants, outcomes, strict=True)]
    lines = list(
        show(judgements, read_equal("# A comment.\nd stores/find.py: no row has it\na stores/find.py: killed"))
    )
    assert re.search(r"^stores +5 +2 +1 +1 +0 +0 +1$", "\n".join(lines), re.MULTILINE)
    assert "All tests kill 75.0 % of 4 decided mutants that are not equal." in lines
    assert "The daily tests kill 66.7 % of those 3." in lines
    survivors = lines[lines.index("\nsurvived:") :][1:4]
    assert survivors == ["e src/regulars/stores/find.py:7 (off by one; 3 tests ran)", "    - a = 1", "    + a = 2"]
