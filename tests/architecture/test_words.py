"""`kit` has no domain word, and `http` knows no room: what their code is called speaks of neither."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.support import syntax
from tests.support.project import PACKAGE

# Words of the trade, as the rooms have them, but for those with another meaning below: one stores and replies, a text is
# also what is not bytes, and paths have segments.
DOMAIN = frozenset(
    [
        "profile",
        "customer",
        "sale",
        "ticket",
        "consent",
        "subscription",
        "catalog",
        "journey",
        "campaign",
        "webhook",
        "loyalty",
    ]
)
# Two registers name everything that is to be unique in one place: the prefixes of ids, and the settings.
REGISTERS = {PACKAGE / "kit" / "ids.py", PACKAGE / "kit" / "settings.py"}


def names_in(source: str) -> Iterator[str]:
    for node in ast.walk(syntax.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def domain_words(source: str) -> set[str]:
    return {
        name
        for name in names_in(source)
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
        if word.lower().removesuffix("s") in DOMAIN
    }


@pytest.mark.parametrize("room", ["kit", "http"])
def test_what_stands_below_the_rooms_speaks_of_none(room):
    files = [file for file in sorted((PACKAGE / room).rglob("*.py")) if file not in REGISTERS]
    found = {str(file.relative_to(PACKAGE)): domain_words(file.read_text()) for file in files}
    assert {place: words for place, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class ProfileNotFound: pass", {"ProfileNotFound"}),
        ("def read(sales_max): pass", {"sales_max"}),
        ("WEBHOOK_BYTES = 1", {"WEBHOOK_BYTES"}),
        ("def read_text(texts): return salesman(texts)", set()),
    ],
)
def test_the_rule_sees_words_in_names(source, words):
    assert domain_words(source) == words


# A trace stores the kind of a failure for developers, beside the sentence that pages show.
STORED_FOR_DEVELOPERS = {"journeys/runs/queue.py"}
# Their words reach the log, or the terminal of a developer who broke a rule of the code.
UNSHOWN = {"AssertionError", "NotImplementedError"}


def shown_class_names(source: str) -> list[int]:
    """Lines that put the class name of a value into anything but the log."""
    # Most files have none, and a search costs far less than a parse.
    if "__name__" not in source:
        return []
    tree = syntax.parse(source)
    unshown = [
        node
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and ((ast.unparse(call.func).startswith("_log.")) or ast.unparse(call.func) in UNSHOWN)
        for node in ast.walk(call)
    ]
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "__name__"
        and ast.unparse(node.value).startswith("type(")
        and node not in unshown
    ]


def test_no_sentence_for_people_holds_the_name_of_a_python_exception():
    files = {str(file.relative_to(PACKAGE)): file for file in sorted(PACKAGE.rglob("*.py"))}
    found = {place: shown_class_names(file.read_text()) for place, file in files.items()}
    assert {place: lines for place, lines in found.items() if lines and place not in STORED_FOR_DEVELOPERS} == {}
    assert shown_class_names("raise Away(f'it did not answer ({type(error).__name__})')") == [1]
    assert shown_class_names("_log.warning('lost', error=type(error).__name__)") == []
