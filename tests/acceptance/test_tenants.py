"""I9, as a matrix: every route of the document and every page, with another organization's ids, cursors, keys, sessions.

It is made from the OpenAPI document and the page table: a new route is in it by being there.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from tests.crash.shops import STORE, Shop, open_shops
from tests.support import samples
from tests.support.client import Answer, Api, new_http, segment
from tests.support.tenant import Tenant
from tests.support.visitor import Visitor, sign_in_now

from regulars.kit import ids
from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web.access import Role
from regulars.web.route import Page

PLACEHOLDER = re.compile(r"\{(\w+)\}")
PAGES = page_table(Settings())
ABOUT = tuple(page for page in PAGES if page.is_of_organization and PLACEHOLDER.search(page.path))
# Their placeholder is a word with the same meaning in every organization, and no id.
WORDS = re.compile(r"/(reference/\{subject\}|(attributes|products)/\{key\}.*)")
# What of theirs a page's placeholder names; any other gets a customer.
REFERENCE_OF = {
    "number": "subscription_id", "ticket": "sales_event_id", "store": "store_id", "journey": "journey", "key": "key",
    "endpoint": "webhook", "member": "member",
}  # fmt: skip
BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "/v1/profiles": samples.profile,
    "/v1/profiles/batch": lambda: {"items": [samples.profile()]},
    "/v1/profiles/{profile_id}/attributes": lambda: {"attributes": {"tier": "gold"}},
    "/v1/stores": samples.store,
    "/v1/subscriptions/opt-in": samples.opt_in,
    "/v1/subscriptions/opt-out": lambda: {"phone_number": samples.phone()},
    "/v1/subscriptions/check": lambda: {"items": [{"phone_number": samples.phone()}]},
    "/v1/sales-events": lambda: samples.sale(STORE),
    "/v1/sales-events/batch": lambda: {"items": [samples.sale(STORE)]},
}
# Where a body may name things of another organization, and how it is refused.
REFERENCES = {
    ("/v1/sales-events", "store_id"), ("/v1/sales-events", "profile_id"),
    ("/v1/subscriptions/opt-in", "profile_id"), ("/v1/subscriptions/opt-in", "store_id"),
    ("/v1/subscriptions/opt-out", "profile_id"),
}  # fmt: skip


class House:
    """Two organizations that are alike: one asks, and the other has what it asks for."""

    def __init__(self, api: Api, database_url: str) -> None:
        taken = itertools.islice(_tags(), 2)
        mine, theirs = open_shops(database_url, list(taken), hooks_url="http://127.0.0.1:9", public_url=api.server.url)
        self.mine, self.theirs, self._url = mine, theirs, database_url
        self.api, self.their_api = (api.as_tenant(self._tenant(shop)) for shop in (mine, theirs))
        customer = theirs.customer(1)
        sale = samples.sale(STORE, external_id=f"{theirs.tag}-ticket", profile_id=customer)
        self.their_key = samples.unique("theirs")
        assert self.their_api.post("/v1/sales-events", sale, idempotency_key=self.their_key).status == 201
        more = samples.sale(STORE, external_id=f"{theirs.tag}-ticket-2", profile_id=customer)
        assert self.their_api.post("/v1/sales-events", more).status == 201
        self.their_sale = sale
        self.names = {
            "profile_id": customer,
            "store_id": f"{theirs.tag}-store",
            "sales_event_id": f"{theirs.tag}-ticket-2",
        }
        assert self.their_api.post("/v1/stores", samples.store(external_id=f"{theirs.tag}-store")).status == 201
        assert self.their_api.post("/v1/stores", samples.store(external_id=f"{theirs.tag}-store-2")).status == 201

    def _tenant(self, shop: Shop) -> Tenant:
        [key] = self.rows("SELECT id FROM api_keys WHERE organization_id = %s", shop.organization_id)
        return Tenant(shop.organization_id, key[0], shop.key)

    def rows(self, query: str, *values: object) -> list[Any]:
        with psycopg.connect(self._url) as connection:
            return connection.execute(query, values).fetchall()  # type: ignore[arg-type]  # literals of this file

    def canonical_ids(self) -> dict[str, str]:
        """One of each kind of thing that they have."""
        kinds = {
            "profile_id": (ids.PROFILE, "profiles"),
            "store_id": (ids.STORE, "stores"),
            "sales_event_id": (ids.SALES_EVENT, "sales_events"),
            "subscription_id": (ids.SUBSCRIPTION, "subscriptions"),
            "journey": (ids.JOURNEY, "journeys"),
            "key": (ids.API_KEY, "api_keys"),
            "webhook": (ids.WEBHOOK, "webhook_endpoints"),
        }
        found = {}
        for name, (kind, table) in kinds.items():
            query = f"SELECT id FROM {table} WHERE organization_id = %s LIMIT 1"  # noqa: S608  # the names above
            found[name] = kind.encode(self.rows(query, self.theirs.organization_id)[0][0])
        return found

    def they_are_whole(self) -> bool:
        """Whether nothing of theirs was deleted or moved to another customer."""
        customers = {sale["external_id"]: sale["profile"] for sale in self.their_api.pages("/v1/sales-events")}
        names = (f"{self.theirs.tag}-ticket", f"{self.theirs.tag}-ticket-2")
        return all(customers[name]["external_id"] == self.names["profile_id"] for name in names)

    def leaks(self, text: str) -> bool:
        """Whether something that only they have is in it."""
        number = self.theirs.number(1)
        return f"{self.theirs.tag}-" in text or number in text or f"Shop {self.theirs.tag}" in text


def _tags() -> Iterator[str]:
    return (f"{samples.next_number() + 0xA000000:09x}" for _ in itertools.count())


@pytest.fixture(scope="module")
def house(server, contract, api_database_url) -> Iterator[House]:
    with new_http() as http:
        yield House(Api(server, contract, http, None), api_database_url)


# The description of the interface is public.
OPEN = {"/v1/openapi.json", "/v1/journeys/schema.json"}


def operations(api: Api) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, item in api.contract.document["paths"].items()
        for method, operation in item.items()
        if isinstance(operation, dict) and "operationId" in operation and path not in OPEN
    ]


def call(api: Api, method: str, path: str, *, target: str | None = None, key: str | None = None) -> Answer:
    target = PLACEHOLDER.sub("nobody", path) if target is None else target
    if method != "POST":
        return api.call(method, target)
    return api.post(target, BODIES[path](), idempotency_key=key)


def test_every_route_that_takes_a_body_is_in_the_matrix(house):
    assert {path for method, path, _ in operations(house.api) if method == "POST"} == BODIES.keys()


def test_the_ids_of_another_organization_are_ids_of_nothing(house):
    canonical = house.canonical_ids()
    for method, path, _ in operations(house.api):
        [*names] = PLACEHOLDER.findall(path)
        if not names:
            continue
        references = [canonical[names[0]]] + ([house.names[names[0]]] if names[0] in house.names else [])
        for reference in references:
            answer = call(house.api, method, path, target=PLACEHOLDER.sub(segment(reference), path))
            assert answer.status == 404, (method, path, reference, answer.body)
            assert not house.leaks(answer.body.decode().replace(reference, "")), (method, path)
    assert house.they_are_whole()


def test_filters_by_what_another_organization_has_find_nothing(house):
    canonical = house.canonical_ids()
    values = {
        "store_id": [canonical["store_id"], house.names["store_id"]],
        "profile_id": [canonical["profile_id"], house.names["profile_id"]],
        "external_id": [house.names["sales_event_id"], house.names["profile_id"]],
        "phone_number": [house.theirs.number(1)],
    }
    asked = 0
    for method, path, operation in operations(house.api):
        names = [one.get("name") for one in operation.get("parameters", ()) if one.get("in") == "query"]
        for name in set(names) & values.keys():
            for value in values[name]:
                answer = house.api.call(method, f"{path}?{name}={segment(value)}")
                asked += 1
                assert answer.status == 404 or answer.json()["data"] == [], (path, name, answer.body)
                assert not house.leaks(answer.body.decode().replace(value, "")), (path, name)
    assert asked > 5


def test_a_cursor_of_another_organization_is_refused(house):
    asked = 0
    for method, path, operation in operations(house.api):
        names = {one.get("name") for one in operation.get("parameters", ())}
        if "cursor" not in names or PLACEHOLDER.search(path):
            continue
        cursor = house.their_api.get(path, limit=1).json()["next_cursor"]
        assert cursor is not None, path
        assert house.api.call(method, f"{path}?limit=1&cursor={cursor}").refused == (400, "INVALID_CURSOR"), path
        asked += 1
    assert asked >= 4


def test_an_idempotency_key_of_another_organization_is_a_key_of_ones_own(house):
    for method, path, operation in operations(house.api):
        takes_a_key = any("IdempotencyKey" in one.get("$ref", "") for one in operation.get("parameters", ()))
        if not takes_a_key or PLACEHOLDER.search(path):
            continue
        key = samples.unique("shared")
        theirs, mine = (call(caller, method, path, key=key) for caller in (house.their_api, house.api))
        assert not theirs.is_replay, path
        assert not mine.is_replay, path
        assert mine.status == theirs.status, path
    # The very request of theirs, byte for byte, makes a sale of one's own.
    sale = samples.without(house.their_sale, "profile_id")
    answer = house.api.post("/v1/sales-events", sale, idempotency_key=house.their_key)
    assert (answer.status, answer.is_replay) == (201, False)


@pytest.mark.parametrize(("path", "field"), sorted(REFERENCES))
def test_a_body_that_names_another_organizations_things_is_refused(house, path, field):
    body = BODIES[path]()
    if path == "/v1/subscriptions/opt-out":
        body = {}
    answer = house.api.post(path, {**body, field: house.canonical_ids()[field]})
    assert answer.status == 404, answer.body
    assert not house.leaks(answer.body.decode())


@pytest.fixture(scope="module")
def visitors(house, api_database_url, server) -> Iterator[tuple[Visitor, Visitor]]:
    with new_http() as http:
        mine, theirs = (
            Visitor(http, server.url, sign_in_now(api_database_url, shop.organization_id, Role.OWNER))
            for shop in (house.mine, house.theirs)
        )
        yield mine, theirs


def ask(visitor: Visitor, page: Page, path: str) -> Any:
    return visitor.get(path) if page.method == "GET" else visitor.post(path)


def test_a_session_of_another_organization_opens_no_page(house, visitors):
    mine, theirs = visitors
    for page in PAGES:
        if not page.is_of_organization:
            continue
        path = f"/o/{mine.who.slug}{PLACEHOLDER.sub('nobody', page.path)}"
        answer = ask(theirs, page, f"/{path}")
        assert answer.status_code == 404, (page.method, page.address, answer.status_code)
        assert f"{house.mine.tag}" not in answer.text.replace(mine.who.slug, ""), page.address


def test_the_things_of_another_organization_are_on_no_page(house, visitors):
    mine, theirs = visitors
    canonical = {**house.canonical_ids(), "member": str(theirs.who.user_id)}
    cases = [
        (page, named[kind])
        for page in ABOUT
        if not WORDS.fullmatch(page.path)
        for kind in [REFERENCE_OF.get(PLACEHOLDER.findall(page.path)[0], "profile_id")]
        for named in (canonical, house.names)
        if kind in named
    ]
    for page, reference in cases:
        answer = ask(mine, page, PLACEHOLDER.sub(segment(reference), page.path))
        # 409: a form without the figures that its page shows is refused before anything is looked up.
        assert answer.status_code in {303, 400, 404, 409}, (page.method, page.path, reference, answer.status_code)
        if answer.status_code == 303:
            # Nothing was done, and the way leads back into one's own organization.
            assert answer.headers["location"].startswith(f"/o/{mine.who.slug}"), page.path
        assert not house.leaks(answer.text.replace(reference, "")), (page.method, page.path, reference)
    assert house.they_are_whole()
