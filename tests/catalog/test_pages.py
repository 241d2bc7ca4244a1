"""The catalogs in the web application: what is there, and a type that is counted before it is changed."""

import re
import time

import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.drain_queues import drain_queues

from regulars.web.access import Role


@pytest.fixture
def customers(api: Api):
    for size in ("1", "2", "n/a"):
        api.post("/v1/profiles", samples.profile(attributes={"household size": size, "a/b": "<b>bold</b>"}))


@pytest.fixture
def work(api_database_url, tenant):
    """Let the worker take its turns now."""
    return lambda: drain_queues(api_database_url, tenant.organization_id)


def preview_id(page: str) -> str:
    return re.search(r'name="preview" value="([^"]+)"', page)[1]


def test_an_empty_catalog_says_how_a_key_gets_there(marketer):
    assert "An attribute appears here when it is first received" in marketer.get("/attributes").text
    assert "when a ticket with it is first received" in marketer.get("/products").text


def test_keys_are_listed_found_and_opened_whatever_they_are_called(marketer, customers):
    page = marketer.get("/attributes").text
    assert "household size" in page
    assert "not counted" in page
    assert "a/b" not in marketer.get("/attributes", q="hold").text
    assert "household size" not in marketer.get("/attributes", type="text").text
    assert marketer.get("/attributes/a%2Fb").status_code == 200
    assert marketer.get("/attributes/nothing").status_code == 404


def test_counting_fills_the_list(marketer, customers, work):
    assert marketer.post("/attributes/count").status_code == 303
    assert "Counting values" in marketer.get("/attributes").text
    work()
    page = marketer.get("/attributes").text
    assert "66.7%" in page
    assert "1 do not fit" in page


def test_a_type_is_counted_before_it_is_changed(marketer, customers, work):
    path = "/attributes/household%20size"
    started = marketer.post(f"{path}/preview", type="enum", values="1\n2\n")
    assert started.status_code == 303
    running = marketer.get(path).text
    assert "Counting stored values" in running
    assert "Change to fixed list" not in running
    work()
    page = marketer.get(path).text
    assert "of 3 stored values fit the type" in page
    assert "<code>n/a</code>" in page
    assert '<span class="tag">number</span>' in page
    assert marketer.post(f"{path}/confirm", preview=preview_id(page)).status_code == 303
    changed = marketer.get(path).text
    assert '<span class="tag">fixed list</span>' in changed
    assert "Allowed values" in changed
    assert "Preview: type" not in changed


def test_a_preview_can_be_left(marketer, customers, work):
    path = "/attributes/household%20size"
    marketer.post(f"{path}/preview", type="text")
    work()
    assert marketer.post(f"{path}/cancel").status_code == 303
    assert "Preview: type text" not in marketer.get(path).text


def test_only_the_preview_that_was_seen_can_be_confirmed(marketer, customers, work):
    path = "/attributes/household%20size"
    marketer.post(f"{path}/preview", type="text")
    work()
    seen = preview_id(marketer.get(path).text)
    marketer.post(f"{path}/preview", type="boolean")
    work()
    marketer.post(f"{path}/confirm", preview=seen)
    marketer.post(f"{path}/confirm")
    assert '<span class="tag">number</span>' in marketer.get(path).text


def test_an_enum_without_values_comes_back_with_its_error(marketer, customers):
    refused = marketer.post("/attributes/household%20size/preview", type="enum", values=" \n ")
    assert refused.status_code == 400
    assert "Enter at least one value" in refused.text


def test_samples_are_masked_for_an_analyst_who_changes_nothing(visitor_as, marketer, customers, work):
    path = "/attributes/household%20size"
    marketer.post(f"{path}/preview", type="number")
    work()
    analyst = visitor_as(Role.ANALYST)
    page = analyst.get(path).text
    assert "of 3 stored values fit the type" in page
    assert "n/a" not in page
    assert "Change the type" not in page
    assert analyst.post(f"{path}/preview", type="text").status_code == 403


def test_product_properties_have_the_same_pages(marketer, api: Api, work):
    store = api.post("/v1/stores", samples.store()).json()
    lines = [samples.line(product={"properties": {"size": size}}) for size in ("38", "XL")]
    api.post("/v1/sales-events", samples.sale(store["external_id"], line_items=lines))
    deadline = time.monotonic() + 90
    while "size" not in marketer.get("/products").text and time.monotonic() < deadline:
        work()
    assert marketer.post("/products/size/preview", type="number").status_code == 303
    work()
    page = marketer.get("/products/size").text
    assert "of 2 stored values fit the type" in page
    assert "<code>XL</code>" in page
