"""Writes docs/lists.md from the declared columns: `python tests/docs/list_columns.py`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from regulars.accounts.list_pages import ListPages  # noqa: E402  # after the path, so that it runs as a script
from regulars.kit.settings import Settings  # noqa: E402
from regulars.lists.columns import Column, Columns, Place  # noqa: E402
from regulars.profiles.file_columns import PROFILE_COLUMNS  # noqa: E402
from regulars.server import page_table  # noqa: E402

PATH = ROOT / "docs" / "lists.md"
# Lists whose pages are written by hand.
BY_HAND = {"/customers": PROFILE_COLUMNS, "/segments/{segment}/members": PROFILE_COLUMNS}
COMMANDS = {
    "/webhooks/deliveries": "webhook deliveries",
    "/segments/{segment}/members": "segment members --csv",
}
HEAD = """# Columns of lists

Use this page to find out where a value of a list stands: most columns stand on the page, in the CSV file and in what the
command prints. The table has those that stand in one of them only. A user who may not see personal data gets a column
masked (`•••`), unless the list says that it is harmless.

| list | masked | only on the page | only in the file | only in the command |
|---|---|---|---|---|
"""
FOOT = """
The columns are declared once, beside the page of each list, and `tests/docs/list_columns.py` writes this page. The headings
of a page are those of the declaration; a column without a heading stands in the cell of another one.
"""


class DeclaredList(NamedTuple):
    path: str
    columns: Columns[Any]

    @property
    def command(self) -> str | None:
        return COMMANDS.get(self.path)

    def columns_only(self, place: Place) -> list[Column[Any]]:
        has = Place.ALL if self.command else Place.PAGE | Place.FILE
        return [column for column in self.columns.columns if column.places & has == place]


def list_declared() -> Iterator[DeclaredList]:
    for page in page_table(Settings()):
        owner = getattr(page.handle, "__self__", None)
        if isinstance(owner, ListPages) and not page.path.endswith(".csv"):
            yield DeclaredList(page.path, owner.columns)
        elif page.path in BY_HAND:
            yield DeclaredList(page.path, BY_HAND[page.path])


def render() -> str:
    rows = []
    for each in sorted(list_declared()):
        name = f"`{each.path}`" + (f", `{each.command}`" if each.command else "")
        masked = [column for column in each.columns.columns if not column.is_harmless]
        groups = [masked, *(each.columns_only(place) for place in Place)]
        cells = [", ".join(f"`{column.name}`" for column in group) for group in groups]
        rows.append(f"| {name} | {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |"))
    return HEAD + "".join(rows) + FOOT


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
