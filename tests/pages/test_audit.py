"""Every administrative act leaves a line in the audit log."""

import inspect
import sys

import pytest

from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web.access import Role
from regulars.web.route import Form

# Their use cases record, or the one function through which all forms of the builder go; tests of them hold it.
RECORDS_BELOW = ("regulars.accounts.", "regulars.journeys.pages.edit.")
# It reads what was pasted, changes nothing and keeps nothing.
CHANGES_NOTHING = {"/webhooks/check"}


def forms():
    table = page_table(Settings(database_url="postgresql://nowhere"))
    of_organization = [page for page in table if isinstance(page, Form) and page.is_of_organization]
    return [page for page in of_organization if page.path not in CHANGES_NOTHING]


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.path)
def test_the_module_of_every_form_records_what_it_does(form):
    module = sys.modules[form.handle.__module__]
    assert module.__name__.startswith(RECORDS_BELOW) or "record(" in inspect.getsource(module)


def test_a_key_is_in_the_log_from_its_making_to_its_end(visitor_as):
    owner = visitor_as(Role.OWNER)
    made = owner.post("/keys", name="Lyon tills", permission="ingest")
    key = made.headers["location"].rpartition("/")[2]
    owner.post(f"/keys/{key}/revoke", sure="on")
    exported = owner.get("/settings/audit.csv").text.splitlines()
    acts = [line.split(",")[3:5] for line in exported[1:]]
    assert acts == [["key.revoke", key], ["key.create", key]]
    assert '"permission"' in exported[2]


def test_the_log_is_for_owners_and_admins_and_filters_stay_in_the_address(visitor_as):
    owner = visitor_as(Role.OWNER)
    owner.post("/settings/team/invite", email="new@shop.example", role="analyst")
    owner.post("/keys", name="One", permission="ingest")
    assert "key.create" not in owner.get("/settings/audit.csv", act="member.invite").text
    page = owner.get("/settings/audit", act="member.invite").text
    assert "1 act, the newest first." in page
    for role in (Role.MARKETER, Role.ANALYST, Role.DEVELOPER):
        assert visitor_as(role).get("/settings/audit.csv").status_code == 403
