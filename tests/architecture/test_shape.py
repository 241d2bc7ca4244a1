import ast

import pytest
from tests.support import syntax
from tests.support.project import PACKAGE, ROOT, functions, python_files, statements_in

Function = ast.FunctionDef | ast.AsyncFunctionDef

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

EVERYWHERE = python_files("src", "tests", "bench")


def long_functions(inside: list[Function]) -> list[str]:
    return [
        f"{function.name} has {length} lines"
        for function in inside
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]


def inner_imports(inside: list[Function]) -> list[str]:
    return [
        f"line {node.lineno} imports"
        for function in inside
        for node in statements_in(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def function_faults(source: str) -> list[str]:
    """Both rules with one parse, as parsing takes most of the time."""
    inside = list(functions(syntax.parse(source)))
    return [*long_functions(inside), *inner_imports(inside)]


def is_docstring_only(source: str) -> bool:
    body = syntax.parse(source).body
    return len(body) == 1 and ast.get_docstring(syntax.parse(source)) is not None


def relative(path):
    return str(path.relative_to(ROOT))


def test_no_file_is_longer_than_400_lines():
    lengths = {relative(path): len(path.read_text().splitlines()) for path in EVERYWHERE}
    assert {path: length for path, length in lengths.items() if length > FILE_LINES_MAX} == {}


def test_no_function_is_longer_than_70_lines_or_imports():
    found = {relative(path): function_faults(path.read_text()) for path in EVERYWHERE}
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_an_init_file_is_a_docstring_and_nothing_else():
    inits = [path for path in EVERYWHERE if path.name == "__init__.py"]
    assert [relative(path) for path in inits if not is_docstring_only(path.read_text())] == []


def test_every_room_says_what_it_is():
    rooms = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [relative(room) for room in rooms if not (room / "__init__.py").exists()] == []


@pytest.mark.parametrize(
    ("source", "is_allowed"),
    [('"""Says."""\n', True), ("", False), ('"""Says."""\nfrom regulars import kit\n', False), ("x = 1\n", False)],
)
def test_the_init_rule_sees_re_exports_and_silence(source, is_allowed):
    assert is_docstring_only(source) is is_allowed


def test_the_function_rules_see_what_they_are_for():
    assert function_faults("def f():\n    import os\n") == ["line 2 imports"]
    assert function_faults(
        "def f():\n  try:\n    x()\n  except E:\n    match x:\n      case 1:\n        import os\n"
    ) == ["line 7 imports"]
    assert function_faults("import os\ndef f():\n    pass\n") == []
    assert function_faults("def f():\n" + "    x = 1\n" * 69) == []
    assert function_faults("class C:\n  async def f():\n" + "    x = 1\n" * 70) == ["f has 71 lines"]
