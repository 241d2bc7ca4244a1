"""What holds for each kind of condition: its file, its form and its row in the docs."""

import ast
import inspect
from datetime import date
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec
import pytest
from tests.support.project import ROOT

from regulars.columns.engine.customer_columns import CODED, NUMERIC
from regulars.columns.engine.required_columns import RequiredColumns
from regulars.conditions import kinds, tree
from regulars.conditions.column_protocol import Code, Columns, Flag, Mask, Moment
from regulars.conditions.forms import parts
from regulars.conditions.kind import TicketKind

LEAVES = get_args(tree.Leaf)
FILES = sorted(Path(kinds.__path__[0]).glob("[a-z]*.py"))
# The operators have a table of their own.
VALUES_SHOWN_MAX = 5
FOREIGN = ("numpy", "polars", "jinja2", "regulars.web", "regulars.columns", "regulars.segments", "regulars.journeys")


def row_of(kind) -> str:
    """The row of a kind in docs/conditions.md: its type, its description, and its fields with their few values."""
    fields = ", ".join(f"`{field.encode_name}`{values_of(field.type)}" for field in msgspec.structs.fields(kind))
    return f"| `{kind.__struct_config__.tag}` | {' '.join(inspect.cleandoc(kind.__doc__).split())} | {fields} |"


def values_of(type_) -> str:
    values = get_args(type_) if get_origin(type_) is Literal else ()
    return f" ({', '.join(f'`{value}`' for value in values)})" if 0 < len(values) <= VALUES_SHOWN_MAX else ""


def rows_under(heading: str) -> list[str]:
    section = (ROOT / "docs" / "conditions.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_the_docs_describe_each_kind_as_its_file_does():
    of_ticket = [kind for kind in LEAVES if issubclass(kind, TicketKind)]
    assert rows_under("Conditions about the ticket") == [row_of(kind) for kind in of_ticket]
    assert rows_under("Conditions about a customer") == [row_of(kind) for kind in LEAVES if kind not in of_ticket]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kind_imports_neither_arrays_nor_templates_nor_a_higher_room(path):
    imported = [
        name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [it.name for it in node.names])
    ]
    assert imported
    assert not [name for name in imported if name.startswith(FOREIGN)]


def test_each_kind_has_a_form_that_the_builder_offers():
    offered = {form.fixed.get("type", form.kind) for form in tree.FORMS}
    assert offered == {kind.__struct_config__.tag for kind in LEAVES}
    assert len({form.kind for form in tree.FORMS}) == len(tree.FORMS)
    assert {type(part) for form in tree.FORMS for part in form.parts} == set(get_args(parts.Part))


def test_the_protocol_of_columns_has_at_most_fifteen_operations():
    operations = [name for name in vars(Columns) if not name.startswith("_")] + ["__and__", "__invert__"]
    assert vars(Mask).keys() >= {"__and__", "__invert__"}
    assert len(operations) <= 15


def test_each_column_of_the_protocol_is_stored():
    assert {*Flag, *Moment} <= NUMERIC.keys()
    assert {*Code} <= CODED.keys()


def test_what_an_answer_reads_is_found_without_data():
    windowed = tree.Spend(currency="EUR", none=True, window=tree.Window(last_days=3), products=("A",), stores=("LYO",))
    required = RequiredColumns.of(windowed, date(2026, 11, 15))
    assert required.sales == {"customer", "kind", "at_s", "store", "sale", "ids", "total"}
    consent = tree.Consent(state="withdrawn", is_=False, sources=("OTHER",))
    assert RequiredColumns.of(consent, date(2026, 11, 15)).customers == {"consent", "own", "source"}
