"""A role that may not see personal data sees none, on any page, in any file, and by no way of asking."""

import re
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from tests.pages.full_house import PRIVATE_MARKER
from tests.pages.test_every_page import TABLE, WHO_MAY
from tests.privacy.test_declared import declarations
from tests.support.crawl import CrawledPage, crawl
from tests.support.forms import find_forms
from tests.support.visitor import Visitor, sign_in_now

from regulars.web.access import Action, Role, may
from regulars.web.router import PageRouter

# No page shows these tables, and what is in them has gone before a page is opened.
NO_PAGE = {
    "outbox",
    "outbox_retries",
    "idempotency_keys",
    "suppressions",
    "segment_blobs",
    "simulated_texts",
    "campaign_audiences",
}
LINKS = {"profile_id", "number_hash", "fact_id"}
ROUTER = PageRouter(TABLE)
MASKED = [role for role in Role if not may(role, Action.SEE_PERSONAL)]


@pytest.fixture(params=MASKED)
def role(request) -> Role:
    return request.param


@pytest.fixture
def masked(role, full_house, api_database_url) -> Visitor:
    """A user of the same organization."""
    owner = full_house[1]
    who = sign_in_now(api_database_url, full_house[0].organization_id, role)
    return Visitor(owner.http, owner.base_url, who)


def test_no_page_shows_a_masked_role_anything_of_a_customer_or_a_form_that_it_may_not_send(full_house, role, masked):
    number = full_house[0].number
    seen = crawl(masked, TABLE)
    assert [(one.path, one.status) for one in seen if one.status >= 500] == []
    opened = {one.page.path for one in seen if one.status == 200}
    assert {"/customers/{customer}", "/journeys/{journey}/runs/{run}", "/messages/{text}"} <= opened
    digits = re.sub(r"[^0-9]", "", number)
    # A crawl opens a few customers of the list; this one has texts that failed, runs and consents.
    customer = f"/customers/{full_house[0].customer}"
    texts = {one.path: one.text for one in seen} | {customer: masked.get(customer).text}
    shown = []
    for path, text in texts.items():
        place = text.find(PRIVATE_MARKER)
        if place != -1:
            shown.append((path, text[max(place - 200, 0) : place + 20]))
        if digits[2:-2] in re.sub(r"[^0-9a-f]", "", text):
            shown.append((path, "the number"))
    assert "Failed" in texts[customer]
    assert not shown, "\n".join(map(str, shown))
    needs = {(one.path, action) for one in seen if one.is_html for action in _needs_of_forms(one)}
    assert needs
    assert {it for it in needs if role not in WHO_MAY[it[1]]} == set()


def _needs_of_forms(seen: CrawledPage) -> set[Action]:
    """The permissions that the forms of the page need."""
    forms = [urlsplit(form.action or seen.path).path for form in find_forms(seen.text)]
    pages = [ROUTER.find("POST", path.encode())[0] for path in forms]
    return {page.needs for page in pages if isinstance(page.needs, Action)}


def test_an_external_id_answers_like_one_that_is_not_there(full_house, masked):
    path = f"/customers/{quote(full_house[0].external_id, safe='')}"
    known = masked.get(path)
    unknown = masked.get("/customers/nobody")
    assert (known.status_code, unknown.status_code) == (404, 404)
    assert full_house[1].get(path).status_code == 200


def test_a_number_cannot_be_found_by_typing_it(full_house, masked):
    owner, number = full_house[1], full_house[0].number
    answers = [
        (visitor.get(f"/simulator/{number}"), visitor.get("/simulator", q=number)) for visitor in (owner, masked)
    ]
    assert [(phone.status_code, search.status_code) for phone, search in answers] == [(200, 303), (404, 400)]
    assert "Your role cannot search for numbers" in answers[1][1].text
    # The owner is redirected to the conversation with the number.
    assert owner.get("/messages", q=number).status_code == 303
    assert masked.get("/messages", q=number).status_code == 200


def test_something_private_stands_in_every_column_that_may_hold_it(full_house, api_database_url):
    """Otherwise the search above could not find it."""
    organization_id = full_house[0].organization_id
    missing = []
    with psycopg.connect(api_database_url) as connection:
        for name in sorted(column for data in declarations().values() for column in data.columns):
            table, _, column = name.partition(".")
            if table in NO_PAGE or column in LINKS or column == "definition":
                continue
            rows = connection.execute(
                SQL("SELECT 1 FROM {} WHERE organization_id = %s AND ({}::text LIKE %s OR {}::text LIKE %s)").format(
                    *map(Identifier, (table, column, column))
                ),
                (organization_id, f"%{PRIVATE_MARKER}%", f"%{full_house[0].number}%"),
            ).fetchall()
            if not rows:
                missing.append(name)
    assert not missing, missing
