"""The list of stores of a small chain and of one with more stores than can be ranked; and that search finds them."""

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from uuid import uuid4

import psycopg
import pytest
from tests.support import samples
from tests.support.drain_queues import drain_queues

from regulars.explore.stores.store_sales import RANKED_MAX
from regulars.kit.ids import SEGMENT
from regulars.sales.totals.reports import StoreActivity
from regulars.web.access import Role
from regulars.web.format import Format
from regulars.web.listing import PAGE_ROWS
from regulars.web.render import _TEMPLATES

NAME = re.compile(r'<a class="name" href="[^"]*/stores/([^"]+)"')
NEXT = re.compile(r'rel="next" href="/o/[^/]+([^"]+)"')
PREVIOUS = re.compile(r'rel="prev" href="/o/[^/]+([^"]+)"')
ADD = """
INSERT INTO stores (organization_id, id, external_id, name, address, created_at, updated_at)
SELECT %(organization_id)s, gen_random_uuid(), 'S' || lpad(n::text, 5, '0'), 'Shop ' || lpad(n::text, 5, '0'),
       json_build_object('address_line1', 'x', 'postal_code', '69' || n, 'locality',
                         CASE WHEN n = %(many)s THEN 'Xanten' ELSE 'Lyon' END, 'country_code', 'FR'), now(), now()
FROM generate_series(1, %(many)s) AS n
"""


def add_stores(url: str, tenant, many: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ADD, {"organization_id": tenant.organization_id, "many": many})


def pages(visitor, path: str, direction: re.Pattern[str] = NEXT) -> Iterator[str]:
    """Each page that the pager leads to, from one on."""
    while True:
        text = visitor.get(path).text
        yield text
        found = direction.search(text)
        if found is None:
            return
        path = html.unescape(found[1])


def names(text: str) -> list[str]:
    return NAME.findall(text)


def test_a_small_chain_is_ranked_and_paged(visitor_as, api_database_url, tenant, api):
    add_stores(api_database_url, tenant, PAGE_ROWS + 10)
    assert api.post("/v1/sales-events", samples.sale("S00042")).status == 201
    drain_queues(api_database_url, tenant.organization_id)
    owner = visitor_as(Role.OWNER)
    first, second = pages(owner, "/stores")
    assert names(first)[0] == "S00042"
    assert (len(names(first)), len(names(second))) == (PAGE_ROWS, 10)
    assert len({*names(first), *names(second)}) == PAGE_ROWS + 10
    found = PREVIOUS.search(second)
    assert found is not None
    assert names(owner.get(html.unescape(found[1])).text) == names(first)
    assert owner.get("/stores.csv").text.count("\r\n") == PAGE_ROWS + 11


def test_a_large_chain_is_looked_through_by_name_to_its_end(visitor_as, api_database_url, tenant):
    many = RANKED_MAX + 10
    add_stores(api_database_url, tenant, many)
    owner = visitor_as(Role.OWNER)
    first, second, *_ = walked = list(pages(owner, "/stores"))
    assert [name for text in walked for name in names(text)] == [f"S{n:05d}" for n in range(1, many + 1)]
    assert f"{RANKED_MAX:,}+ stores" in first
    found = PREVIOUS.search(second)
    assert found is not None
    assert names(owner.get(html.unescape(found[1])).text) == names(first)
    assert names(owner.get("/stores", q="xanten").text) == [f"S{many:05d}"]
    assert names(owner.get("/search", q="xanten").text) == [f"S{many:05d}"]
    assert "No store matches" in owner.get("/stores", q="%").text
    assert owner.get("/stores", sort="sales", after="nonsense").status_code == 200
    assert owner.get("/stores.csv").text.count("\r\n") == many + 1


def test_search_finds_segments_for_who_may_read_them(visitor_as):
    marketer = visitor_as(Role.MARKETER)
    leaf = {"r~kind": "all", "r.0~kind": "bought", "r.0~low": "1", "r.0~days": "30"}
    saved = marketer.post("/segments/save", name="Autumn coats", **leaf)
    assert saved.status_code == 303, saved.text
    identifier = saved.headers["location"].rpartition("/")[2]
    assert SEGMENT.decode(identifier) is not None
    assert identifier in marketer.get("/search", q="coats").text
    assert marketer.get("/search", q=identifier).headers["location"].endswith(f"/segments/{identifier}")
    developer = visitor_as(Role.DEVELOPER)
    assert identifier not in developer.get("/search", q="coats").text
    assert developer.get("/search", q=identifier).status_code == 200


def test_home_compares_today_with_yesterday_up_to_the_same_hour(visitor_as, api_database_url, tenant, api):
    add_stores(api_database_url, tenant, 1)
    # No hour of the day has a later last quarter.
    late = datetime.combine(samples.now().date() - timedelta(days=1), time(23, 45), UTC)
    assert api.post("/v1/sales-events", samples.sale("S00001", occurred_at=samples.at(late))).status == 201
    drain_queues(api_database_url, tenant.organization_id)
    page = " ".join(visitor_as(Role.OWNER).get("/?period=today").text.split())
    assert re.search(r"Yesterday, until \d\d:00: 0 tickets", page)


def test_home_draws_one_currency_and_offers_the_others(visitor_as, api_database_url, tenant, api):
    add_stores(api_database_url, tenant, 2)
    for currency in ("EUR", "GBP"):
        assert api.post("/v1/sales-events", samples.sale("S00001", currency=currency)).status == 201
    drain_queues(api_database_url, tenant.organization_id)
    owner = visitor_as(Role.OWNER)
    for chosen, address in (("EUR", "/?currency=EUR"), ("GBP", "/?currency=GBP")):
        text = owner.get(address).text
        assert re.findall(r'class="bars"[^>]*aria-label="([^"]+)"', text) == [f"Net sales per day in {chosen}"]
        assert re.search(rf'aria-current="true">{chosen}</a>', text)
    assert owner.get("/?currency=XYZ").text.count('class="bars"') == 1
    # Twelve months are drawn by week unless another unit is chosen; a unit that is none is ignored.
    for address, unit, many in (
        ("/?period=12m", "week", 53),
        ("/?period=12m&by=day", "day", 365),
        ("/?by=x", "day", 30),
    ):
        text = owner.get(address).text
        assert f'aria-label="Net sales per {unit} in EUR"' in text
        assert abs(text.partition('class="bars"')[2].partition("</svg>")[0].count("<title>") - many) <= 1
    text = owner.get("/?period=12m&by=store&currency=GBP").text
    assert len(re.findall(r"<title>[^<:]+: £[\d,.]+</title>", text)) == 1
    states = re.findall(r'class="badge[^>]*>.*?</svg>([^<]+)</span>', text.partition('id="ingestion"')[2])
    assert sorted(states) == ["Connected", "No ticket yet"]


@pytest.mark.parametrize(
    ("before", "expected", "missing", "shown"),
    [
        (timedelta(minutes=59), 0.0, "failing", "Connected"),
        (timedelta(hours=3), 0.0, "failing", "No tickets since 11:00"),
        (timedelta(hours=3), 99.0, "is-none", "No tickets since 11:00"),
        (timedelta(days=2), 0.0, "failing", "No tickets since 12 Nov, 14:00"),
    ],
)
def test_a_store_is_live_or_says_since_when_nothing_comes(before, expected, missing, shown):
    now = datetime(2026, 11, 14, 14, tzinfo=UTC)
    activity = StoreActivity(
        store_id=uuid4(), today={}, usual={}, last_received_at=now - before, expected_since_last=expected
    )
    state = str(
        _TEMPLATES.get_template("explore/drawings.html").module.store_state(
            Format("en-GB", "UTC", now=now), activity, now
        )
    )
    assert shown in state
    assert missing not in state
