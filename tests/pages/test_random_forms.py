"""Random forms and queries over every route: there is always a response and never a 5xx, a refused form changes nothing, and what
was saved can be shown."""

import html
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote_from_bytes, urlsplit

import httpx
import psycopg
import pytest
from psycopg import sql
from tests.pages.test_journey_builder import WAIT
from tests.support import samples
from tests.support.crawl import LINK, CrawledPage, crawl
from tests.support.forms import find_forms, find_queries
from tests.support.journeys import make_journey
from tests.support.sign_ins import forget_failed_sign_ins
from tests.support.visitor import Visitor

from regulars.kit.refusals import Refused
from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web import cookies, csrf
from regulars.web.access import Role
from regulars.web.route import Form, Page
from regulars.web.router import PageRouter

PARAMETER = re.compile(r"\{(\w+)\}")
TABLE = page_table(Settings())
ROUTER = PageRouter(TABLE)
SEED = int(os.environ.get("REGULARS_TEST_SEED", "7"))
# Refused before a handler reads them: NUL, half of a surrogate pair, and the start of a character that does not follow.
NO_TEXT = (b"\0", b"a\0b", b"\xed\xa0\x80", b"\xff", b"\xc3")
NO_TEXT_SHARE = 0.1
VALUES = (
    b"",
    b" ",
    b"-1",
    b"0",
    b"9" * 30,
    b"1e999",
    b"NaN",
    "٣".encode(),
    b"x" * 2_000,
    "é".encode() * 30_000,
    b"0001-01-01T00:00",
    b"9999-12-31T23:59",
    b"seg_00000000000000000000000000",
    b"{{ profile.first_name",
    b"[]",
    b'{"EUR": NaN}',
    b"../..",
    b"on",
)
# Guesses for forms that no page of the organization shows.
NAMES = ("name", "text", "value", "was", "id", "email", "password", "state", "etag", "from", "to", "act", "reason")
# A longer target is refused before a page reads it.
QUERY_CHARACTERS_MAX = 6_000
Pairs = list[tuple[bytes, bytes]]
LOGS = ("audit_log", "audit_heads", "request_log", "request_counts")
# Written up to a minute after the request that uses the key, or by a request for any page.
WRITTEN_LATER = {"api_keys": ["last_used_at"], "sessions": ["last_seen_at"]}
USERS = sql.SQL("SELECT user_id FROM memberships WHERE organization_id = %(id)s")


@dataclass(frozen=True)
class KnownForm:
    """A form with its address, its fields, and the page that showed it."""

    page: Page
    address: str
    fields: Pairs
    shown_at: str


@pytest.fixture
def owner(api, visitor_as, api_database_url) -> Visitor:
    """The owner of an organization with one of each."""
    visitor = visitor_as(Role.OWNER)
    store = api.post("/v1/stores", samples.store()).json()["id"]
    api.post("/v1/profiles", samples.profile(attributes={"size": "12"}))
    api.post("/v1/subscriptions/opt-in", samples.opt_in())
    api.post("/v1/sales-events", samples.sale(store))
    make_journey(api_database_url, api.tenant.organization_id, WAIT, is_live=False, name="Welcome")
    made = visitor.post("/segments/save", name="All", **{"r~kind": "all", "r.0~kind": "consent"})
    segment = re.search(r"seg_\w+", made.headers.get("location", ""))
    assert segment is not None, made.text
    assert visitor.post("/campaigns", name="Spring", segment=segment[0]).status_code == 303
    return visitor


def find_known_forms(visitor: Visitor) -> list[KnownForm]:
    """A form of every route: as a page shows it, or else with guessed fields."""
    known: dict[Page, KnownForm] = {}
    parameters: dict[str, str] = {}
    # A file has no forms, and some wait for the analysis process.
    pages = [page for page in TABLE if not page.path.endswith(".csv")]
    for seen in crawl(visitor, pages, addresses=1):
        parameters |= parameters_of(seen)
        for form in find_forms(seen.text) if seen.is_html else ():
            address = form.action or urlsplit(seen.path).path
            page = page_of(address)
            if page is not None:
                fields = [(name.encode(), value.encode()) for name, value in form.fields if name != csrf.FIELD]
                found = KnownForm(page, address, fields, f"/{seen.path}")
                if page not in known or len(known[page].fields) < len(fields):
                    known[page] = found
    for page in TABLE:
        if isinstance(page, Form) and page not in known:
            address = PARAMETER.sub(lambda found: parameters.get(found[1], "x"), page.address)
            known[page] = KnownForm(page, address, [(name.encode(), b"x") for name in NAMES], "")
    return list(known.values())


def find_known_queries(visitor: Visitor) -> dict[str, set[str]]:
    """The names of the parameters of each page: those of its links and of its forms, by address."""
    known: dict[str, set[str]] = {}
    for seen in crawl(visitor, [page for page in TABLE if not page.path.endswith(".csv")], addresses=1):
        path = urlsplit(seen.path).path
        known.setdefault(path, set(NAMES))
        if seen.is_html:
            links = (urlsplit(html.unescape(link)) for link in LINK.findall(seen.text))
            sent = [(link.path, [name for name, _ in parse_qsl(link.query)]) for link in links]
            sent += [(form.action or path, [name for name, _ in form.fields]) for form in find_queries(seen.text)]
            for address, names in sent:
                known.setdefault(urlsplit(address).path, set(NAMES)).update(names)
    return {address: names for address, names in known.items() if page_of(address, "GET") is not None}


def parameters_of(seen: CrawledPage) -> dict[str, str]:
    """The values of the parameters in the path of a page, such as the id of a campaign."""
    pattern = PARAMETER.sub(r"(?P<\1>[^/]+)", seen.page.address)
    found = re.fullmatch(pattern, f"/{urlsplit(seen.path).path.lstrip('/')}")
    return found.groupdict() if found else {}


def page_of(address: str, method: str = "POST") -> Page | None:
    try:
        return ROUTER.find(method, urlsplit(address).path.encode())[0]
    except Refused:
        return None


def vary(fields: Pairs, randomness: random.Random) -> Pairs:
    """The fields with up to three faults: missing, doubled, huge, or of another kind."""
    varied = list(fields)
    for _ in range(randomness.randint(0, 3)):
        value = randomness.choice(NO_TEXT if randomness.random() < NO_TEXT_SHARE else VALUES)
        if not varied:
            return [(b"extra", value)]
        place = randomness.randrange(len(varied))
        name, _value = varied[place]
        match randomness.randrange(4):
            case 0:
                del varied[place]
            case 1:
                varied.insert(randomness.randrange(len(varied) + 1), (name, value))
            case 2:
                varied[place] = (re.sub(rb"\d+", b"7", name) + randomness.choice((b"", b"_1")), value)
            case _:
                varied[place] = (name, value)
    return varied


def send(visitor: Visitor, address: str, fields: Pairs) -> httpx.Response:
    pairs = [(csrf.FIELD.encode(), csrf.token_for(visitor.who.token).encode()), *fields]
    body = "&".join(f"{quote_from_bytes(name)}={quote_from_bytes(value)}" for name, value in pairs)
    headers = {
        "Cookie": f"{cookies.SESSION_HTTP}={visitor.who.token}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return visitor.http.post(f"{visitor.base_url}{address}", content=body.encode(), headers=headers)


class Rows:
    """What is stored of an organization and of its users, without what no form stores: logs, of which that of acts records
    a wrong password too, and the columns that the server writes when it has time."""

    def __init__(self, connection: psycopg.Connection, organization_id: object) -> None:
        self._connection, self._organization_id = connection, organization_id
        tables = connection.execute(
            "SELECT c.table_name, c.column_name FROM information_schema.columns AS c"
            " JOIN information_schema.tables AS t USING (table_schema, table_name)"
            " WHERE t.table_type = 'BASE TABLE' AND c.table_schema = 'public' AND c.table_name <> ALL (%s)"
            " AND (c.column_name IN ('organization_id', 'user_id') OR (c.table_name, c.column_name) = ('users', 'id'))"
            " ORDER BY c.column_name DESC",
            (list(LOGS),),
        ).fetchall()
        # A table with both columns is read by the organization.
        self._query = sql.SQL(" UNION ALL ").join(
            sql.SQL(
                "SELECT {name}, count(*), sum(hashtextextended((to_jsonb(it) - {written_later}::text[])::text, 0))"
                " FROM {table} AS it WHERE {column} IN ({ids})"
            ).format(
                name=sql.Literal(table),
                written_later=sql.Literal(WRITTEN_LATER.get(table, [])),
                table=sql.Identifier(table),
                column=sql.Identifier(column),
                ids=sql.Placeholder("id") if column == "organization_id" else USERS,
            )
            for table, column in dict(tables).items()
        )

    def summarize(self) -> dict[str, tuple[int, object]]:
        rows = self._connection.execute(self._query, {"id": self._organization_id}).fetchall()
        return {name: (count, total) for name, count, total in rows}

    def list_changed(self, before: dict[str, tuple[int, object]]) -> list[str]:
        """The tables whose rows differ now."""
        return [name for name, summary in self.summarize().items() if summary != before[name]]


@pytest.fixture
def rows(api, api_database_url) -> Iterator[Rows]:
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        yield Rows(connection, api.tenant.organization_id)
    forget_failed_sign_ins(api_database_url)


def test_a_change_is_found_beside_what_the_server_writes_by_itself(api, visitor_as, rows, api_database_url):
    user, stored = visitor_as(Role.OWNER).who.user_id, rows.summarize()

    def change(statement, identifier):
        with psycopg.connect(api_database_url, autocommit=True) as connection:
            assert connection.execute(statement, (identifier,)).rowcount == 1
        return rows.list_changed(stored)

    organization = api.tenant.organization_id
    assert change("UPDATE api_keys SET last_used_at = clock_timestamp() WHERE organization_id = %s", organization) == []
    assert change("UPDATE sessions SET last_seen_at = clock_timestamp() WHERE user_id = %s", user) == []
    assert change("UPDATE api_keys SET name = 'Other' WHERE organization_id = %s", organization) == ["api_keys"]
    stored = rows.summarize()
    assert change("UPDATE users SET name = 'Other' WHERE id = %s", user) == ["users"]


@pytest.mark.parametrize("variants", [pytest.param(1, id="one of each"), pytest.param(8, id="in full")])
def test_a_random_form_is_answered_refused_without_a_trace_or_saved_to_be_shown(owner, visitor_as, rows, variants):
    randomness, visitor, faults = random.Random(SEED), owner, []
    forms = find_known_forms(owner)
    stored = rows.summarize()
    for form in forms * variants:
        fields = vary(form.fields, randomness)
        case = f"{form.address} {fields!r:.300}"
        answer = send(visitor, form.address, fields)
        location = answer.headers.get("location", "")
        if answer.status_code >= 500:
            faults.append(f"{answer.status_code}: {case}")
        if answer.status_code >= 400:
            changed = rows.list_changed(stored)
            faults += [f"{answer.status_code}, but changed {changed}: {case}"] if changed else []
            stored = rows.summarize() if changed else stored
            continue
        if location.startswith("/sign-in"):
            visitor = visitor_as(Role.OWNER)
        for shown in {form.shown_at, location} - {""}:
            page = visitor.get(f"/{shown}")
            if page.status_code >= 500:
                faults.append(f"{page.status_code} of {shown} after {case}")
        # A page may store something too, such as that a count is wanted.
        stored = rows.summarize()
    assert faults == [], "\n".join(faults)


def test_a_random_query_is_answered(owner):
    randomness, faults = random.Random(SEED), []
    for address, names in find_known_queries(owner).items():
        fields = [(name.encode(), b"1") for name in randomness.sample(sorted(names), k=3)]
        query = "&".join(
            f"{quote_from_bytes(name)}={quote_from_bytes(value)}" for name, value in vary(fields, randomness)
        )
        answer = owner.get(f"/{address}?{query[:QUERY_CHARACTERS_MAX]}")
        if answer.status_code >= 500:
            faults.append(f"{answer.status_code}: {address}?{query:.300}")
    assert faults == [], "\n".join(faults)
