"""Each list with declared columns, as each role gets it: its page, its file, and the data of its command."""

import csv
import io
import re
from html import unescape

import pytest
from tests.docs.list_columns import DeclaredList, list_declared
from tests.pages.full_house import PRIVATE_MARKER
from tests.pages.test_every_page import TABLE, WHO_MAY
from tests.support.visitor import Visitor, sign_in_now

from regulars.lists.columns import HIDDEN, Place
from regulars.web.access import Action, Role

LISTS = {each.path: each for each in list_declared()}
HEADING = re.compile(r"<th(?: [^>]*)?>(.*?)</th>", re.DOTALL)
# Nothing was bought after a text in this organization.
EMPTY = {"/analyse/attribution/tickets"}
NEEDS = {page.path: page.needs for page in TABLE if page.method == "GET"}


@pytest.fixture(scope="module")
def visitors(full_house, api_database_url) -> dict[Role, Visitor]:
    house, owner = full_house
    return {
        role: Visitor(owner.http, owner.base_url, sign_in_now(api_database_url, house.organization_id, role))
        for role in Role
    }


@pytest.fixture(scope="module")
def addresses(visitors) -> dict[str, str]:
    """Where each list of this organization is, the path of a list of one campaign or segment included."""
    owner, found = visitors[Role.OWNER], {path: path for path in LISTS if "{" not in path}
    for path in LISTS.keys() - found:
        parent, _, rest = path.partition("/{")
        below = rest.partition("}")[2]
        for identifier in re.findall(rf'href="/o/[^/"]+{parent}/([a-z]+_[0-9a-z]+)["/]', owner.get(parent).text):
            if "<tbody>" in owner.get(f"{parent}/{identifier}{below}").text:
                found[path] = f"{parent}/{identifier}{below}"
    return found


def file_of(each: DeclaredList, text: str) -> list[dict[str, str]]:
    """The rows of the file by column; those that stand in it are those that are declared."""
    rows = csv.DictReader(io.StringIO(text))
    assert rows.fieldnames == each.columns.header()
    return list(rows)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", sorted(LISTS))
def test_a_role_gets_the_declared_columns_and_only_harmless_ones_unmasked(visitors, addresses, path, role):
    each, visitor = LISTS[path], visitors[role]
    page, file = visitor.get(addresses[path]), visitor.get(f"{addresses[path]}.csv")
    may_open, may_download = role in WHO_MAY[NEEDS[path]], role in WHO_MAY[NEEDS[f"{path}.csv"]]
    assert (page.status_code, file.status_code) == (200 if may_open else 403, 200 if may_download else 403)
    sees_personal = role in WHO_MAY[Action.SEE_PERSONAL]
    if may_open:
        headings = {unescape(re.sub(r"<[^>]+>", "", heading)).strip() for heading in HEADING.findall(page.text)}
        # A note is shown with what was reviewed.
        declared = {head.label for head, column in each.columns.heads if column.name != "note"}
        assert path in EMPTY or declared <= headings
        assert sees_personal or PRIVATE_MARKER not in page.text
    if not may_download:
        return
    rows = file_of(each, file.text)
    assert bool(rows) == (path not in EMPTY)
    masked = [column.name for column in each.columns.columns if not column.is_harmless and Place.FILE in column.places]
    cells = {(name, row[name]) for row in rows for name in masked if row[name]}
    harmless = [row[name] for row in rows for name in row if name not in masked]
    assert any(harmless) == bool(rows)
    assert all(HIDDEN not in cell and PRIVATE_MARKER not in cell for cell in harmless)
    if sees_personal:
        assert not any(HIDDEN in cell for _, cell in cells)
    else:
        assert [cell for _, cell in cells if PRIVATE_MARKER in cell] == []
        # Of a reason remains what stands before the colon.
        assert [(name, cell) for name, cell in cells if HIDDEN not in cell and name != "reason"] == []
