"""Every administrative act leaves a line in the audit log."""

import inspect
import re
import sys

import pytest
from tests.support import samples
from tests.support.project import ROOT
from tests.support.texts import open_at_any_hour, send_text

from regulars.accounts.audit.sentences import SENTENCES
from regulars.kit.ids import TEXT, new_uuid
from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.texts.settings.model import DAYS, Simulation
from regulars.web.access import Role
from regulars.web.route import Form

# Their use cases record, or the one function through which all forms of the builder go; tests of them hold it.
RECORDS_BELOW = ("regulars.accounts.", "regulars.journeys.pages.edit.")
# The first four read what was typed and store nothing; the others have figures counted, and change no data of the
# organization.
CHANGES_NOTHING = {
    "/webhooks/check",
    "/suggestions",
    "/search",
    "/search/suggestions",
    "/segments/count",
    "/customers/prepare",
}


def forms():
    table = page_table(Settings(database_url="postgresql://nowhere"))
    of_organization = [page for page in table if isinstance(page, Form) and page.is_of_organization]
    return [page for page in of_organization if page.path not in CHANGES_NOTHING]


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.path)
def test_the_module_of_every_form_records_what_it_does(form):
    # A handler may have its arguments bound.
    module = sys.modules[getattr(form.handle, "func", form.handle).__module__]
    assert module.__name__.startswith(RECORDS_BELOW) or re.search(r"record(_act)?\(", inspect.getsource(module))


def lines(owner):
    """The log as a file, without the lines about such files."""
    exported = owner.get("/settings/audit.csv").text.splitlines()
    return [line for line in exported if "audit.export" not in line]


# Files of the analysis process, held by the tests of analytics.
FROM_COLUMNS = {"/analyse/customers.csv", "/analyse/products.csv"}


def test_every_file_that_leaves_is_in_the_log_with_the_number_of_its_rows(visitor_as, api):
    owner = visitor_as(Role.OWNER)
    for number in range(3):
        api.post("/v1/stores", {"external_id": f"S{number}"})
        api.post("/v1/profiles", {"external_id": f"C{number}"})
    paths = [
        page.path
        for page in page_table(Settings(database_url="postgresql://nowhere"))
        if page.path.endswith(".csv") and "{" not in page.path and page.path not in FROM_COLUMNS
    ]
    assert len(paths) > 6
    for path in paths:
        rows = len(owner.get(path).text.splitlines()) - 1
        newest = lines(owner)[1] if "audit" not in path else owner.get(path).text.splitlines()[1]
        assert ".export" in newest, path
        assert f'""rows"":{rows}' in newest, path


def test_an_erasure_over_the_api_is_in_the_log_with_its_key(visitor_as, api):
    owner = visitor_as(Role.OWNER)
    profile = api.post("/v1/profiles", {"external_id": "C1"}).json()["id"]
    assert api.delete(f"/v1/profiles/{profile}").status == 204
    _at, actor, _address, act, subject, *_more = lines(owner)[1].split(",")
    assert (act, subject, actor.startswith("key_")) == ("customer.erase", profile, True)


def test_a_key_is_in_the_log_from_its_making_to_its_end(visitor_as):
    owner = visitor_as(Role.OWNER)
    made = owner.post("/keys", name="Lyon tills", permission="ingest")
    key = made.headers["location"].rpartition("/")[2]
    owner.post(f"/keys/{key}/revoke", sure="on")
    exported = lines(owner)
    acts = [line.split(",")[3:5] for line in exported[1:]]
    assert acts == [["key.revoke", key], ["key.create", key]]
    assert '"permission"' in exported[2]


def test_the_log_is_for_owners_and_admins_and_filters_stay_in_the_address(visitor_as):
    owner = visitor_as(Role.OWNER)
    owner.post("/settings/team/invite", email="new@shop.example", role="analyst")
    owner.post("/keys", name="One", permission="ingest")
    assert "key.create" not in owner.get("/settings/audit.csv", act="member.invite").text
    page = owner.get("/settings/audit", act="member.invite").text
    assert "1 entry, newest first." in page
    for role in (Role.MARKETER, Role.ANALYST, Role.DEVELOPER):
        assert visitor_as(role).get("/settings/audit.csv").status_code == 403


def test_the_log_is_written_in_sentences_that_lead_to_people_and_things(visitor_as):
    owner = visitor_as(Role.OWNER)
    made = owner.post("/keys", name="Lyon tills", permission="ingest").headers["location"].rpartition("/")[2]
    owner.post("/settings/team/invite", email="new@shop.example", role="analyst")
    page = " ".join(re.sub(r"<[^>]+>", " ", owner.get("/settings/audit").text).split())
    assert "created the API key Lyon tills" in page
    assert "invited new@shop.example" in page
    assert f'/keys/{made}"' in owner.get("/settings/audit").text
    about = owner.get("/settings/audit", subject=made).text
    assert "1 entry, newest first." in about
    assert "invited" not in about.partition("<tbody>")[2]
    assert "No entry matches" in owner.get("/settings/audit", to="2020-01-01").text
    assert "2 entries, newest first." in owner.get("/settings/audit", **{"from": "2020-01-01"}).text


def test_every_act_that_is_recorded_has_its_sentence():
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "regulars").rglob("*.py"))
    recorded = set(
        re.findall(
            r"(?:record|_record_everywhere|export_csv|_change)\([^()]*?(?:\([^()]*\)[^()]*?)*?\"([a-z_]+\.[a-z_]+)\"",
            source,
        )
    )
    assert len(recorded) > 40
    assert recorded <= SENTENCES.keys()


class Shelf:
    """An organization with one of everything that a form is about."""

    def __init__(self, url: str, tenant, api, owner) -> None:
        self.url, self.organization_id, self.api, self.owner = url, tenant.organization_id, api, owner
        self.number = samples.phone()
        open_at_any_hour(url, self.organization_id)
        consent = {"phone_number": self.number, "consent_source": "OTHER", "consented_at": samples.ago(days=1)}
        api.post("/v1/subscriptions/opt-in", consent)

    def made(self, path: str, **fields) -> str:
        """The last part of where a form leads to."""
        return self.owner.post(path, **fields).headers["location"].partition("#")[0].rpartition("/")[2]

    def endpoint(self) -> str:
        return self.made("/webhooks", url="https://shop.example/hook", events="profile.*")

    def reply(self) -> str:
        self.owner.post(f"/simulator/{self.number}/reply", text="Do you open on Sunday?")
        return re.findall(r"/messages/inbox/(rpl_\w{26})", self.owner.get("/messages/inbox").text)[-1]

    def unknown_text(self) -> str:
        open_at_any_hour(self.url, self.organization_id, caps=(), simulation=Simulation(loses=1.0))
        return TEXT.encode(send_text(self.url, self.organization_id, self.number, "Hello"))


# What to send to each form so that it does its work.
ACTS = {
    "/analyse/views": lambda _it: ("/analyse/views", {"page": "sales", "query": "period=7d", "name": "Monday"}),
    "/analyse/views/delete": lambda _it: ("/analyse/views/delete", {"page": "sales", "query": "", "name": "Monday"}),
    "/keys": lambda _it: ("/keys", {"name": "till", "permission": "ingest"}),
    "/keys/{key}/revoke": lambda it: (
        f"/keys/{it.made('/keys', name='x', permission='ingest')}/revoke",
        {"sure": "on"},
    ),
    "/messages/{text}/resend": lambda it: (f"/messages/{it.unknown_text()}/resend", {}),
    "/messages/inbox/{reply}/withdraw": lambda it: (f"/messages/inbox/{it.reply()}/withdraw", {}),
    "/messages/inbox/{reply}/not-a-withdrawal": lambda it: (f"/messages/inbox/{it.reply()}/not-a-withdrawal", {}),
    "/messages/inbox/{reply}/answer": lambda it: (
        f"/messages/inbox/{it.reply()}/answer",
        {"words": "Yes.", "once": str(new_uuid())},
    ),
    "/simulator/{number}/reply": lambda it: (f"/simulator/{it.number}/reply", {"text": "Hello"}),
    "/settings/texts/provider": lambda it: (
        "/settings/texts/provider",
        {"provider": "simulator", "fails": "0", "loses": "0", "delay_ms": "0"},
    ),
    "/settings/texts/test": lambda it: ("/settings/texts/test", {"number": it.number, "words": "Hello"}),
    "/settings/texts/hold": lambda _it: ("/settings/texts/hold", {"reason": "A test"}),
    "/settings/texts/release": lambda _it: ("/settings/texts/release", {"reason": "A test"}),
    "/settings/texts/rules/caps": lambda _it: ("/settings/texts/rules/caps", {"texts_0": "1", "hours_0": "24"}),
    "/settings/texts/holdout": lambda _it: ("/settings/texts/holdout", {"percent": "10"}),
    "/settings/texts/countries/{country}/hours": lambda it: (
        "/settings/texts/countries/FR/hours",
        dict.fromkeys(DAYS, "9-18"),
    ),
    "/settings/texts/countries/{country}/default-hours": lambda it: (
        "/settings/texts/countries/FR/default-hours",
        {},
    ),
    "/settings/texts/countries/{country}/notice": lambda it: (
        "/settings/texts/countries/FR/notice",
        {"words": "STOP 36111", "reply_path": "36111"},
    ),
    "/webhooks": lambda _it: ("/webhooks", {"url": "https://shop.example/", "events": "profile.*"}),
    "/webhooks/{endpoint}/edit": lambda it: (
        f"/webhooks/{it.endpoint()}/edit",
        {"url": "https://shop.example/2", "events": "profile.*"},
    ),
    "/webhooks/{endpoint}/ping": lambda it: (f"/webhooks/{it.endpoint()}/ping", {}),
    "/webhooks/{endpoint}/disable": lambda it: (f"/webhooks/{it.endpoint()}/disable", {}),
    "/webhooks/{endpoint}/enable": lambda it: (f"/webhooks/{it.endpoint()}/enable", {}),
    "/webhooks/{endpoint}/delete": lambda it: (f"/webhooks/{it.endpoint()}/delete", {"host": "shop.example/hook"}),
    "/webhooks/{endpoint}/rotate": lambda it: (f"/webhooks/{it.endpoint()}/rotate", {}),
    "/webhooks/{endpoint}/reveal": lambda it: (f"/webhooks/{it.endpoint()}/reveal", {}),
    "/webhooks/{endpoint}/replay": lambda it: (
        f"/webhooks/{it.endpoint()}/replay",
        {"since": "2026-01-01T00:00", "until": ""},
    ),
    "/webhooks/deliveries/{delivery}/replay": lambda it: (
        f"/webhooks/deliveries/{it.made(f'/webhooks/{it.endpoint()}/ping')}/replay",
        {},
    ),
    "/settings/organization": lambda it: (
        "/settings/organization",
        {"name": f"Shop {it.number}", "slug": it.owner.who.slug, "time_zone": "UTC", "locale": "fr-FR"}
        | {"default_country": ""},
    ),
    "/settings/attribution": lambda _it: (
        "/settings/attribution",
        {"click_days": "3", "delivery_hours": "24", "lift_days": "7", "version": "0"},
    ),
    "/settings/team/invite": lambda _it: ("/settings/team/invite", {"email": "new@shop.example", "role": "analyst"}),
}
# Held by tests of their own rooms: forms that need a person, a collision, a count, a
# demo, a journey, a campaign, a segment, a provider or a code, and a preview, which changes nothing.
ELSEWHERE = re.compile(
    r"/(settings/team/|customers/|collisions/|attributes|products|demo|first-steps|journeys|campaigns|segments).*"
    r"|/messages/inbox/.*/send-anyway|/webhooks/.*/withdraw|/settings/texts/(number|countries/.*/sender).*"
    r"|/settings/attribution/preview|/settings/server"
)


def test_every_form_is_tried_here_or_in_its_own_room():
    paths = {form.path for form in forms()}
    assert {path for path in paths if path not in ACTS and not ELSEWHERE.fullmatch(path)} == set()
    assert set(ACTS) <= paths


def test_what_every_form_does_is_in_the_log(api_database_url, tenant, api, visitor_as):
    shelf = Shelf(api_database_url, tenant, api, visitor_as(Role.OWNER))
    silent = []
    for path, act in ACTS.items():
        target, fields = act(shelf)
        before = len(lines(shelf.owner))
        answer = shelf.owner.post(target, **fields)
        after = len(lines(shelf.owner))
        if answer.status_code != 303 or after != before + 1:
            silent.append((path, answer.status_code, after - before))
    assert silent == []
