"""The search box of the API reference, and where a shortened address leads."""

import httpx
import pytest


@pytest.fixture
def find(server):
    def get(path: str, **query: str) -> httpx.Response:
        return httpx.get(f"{server.url}{path}", params=query, trust_env=False, timeout=30)

    return get


def test_the_address_of_the_documents_leads_to_the_reference(find):
    answer = find("/docs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs/api")


def test_only_what_has_every_word_is_shown(find):
    whole, found = find("/docs/api").text, find("/docs/api", q="Opt-In  subscriptions").text
    assert whole.count('class="operation"') > found.count('class="operation"') >= 1
    assert "/v1/subscriptions/opt-in" in found
    assert "/v1/stores/{store_id}" not in found
    assert 'value="Opt-In subscriptions"' in found


def test_a_field_is_found_too(find):
    assert "/v1/sales-events" in find("/docs/api", q="total_discount_cents").text


def test_words_that_stand_nowhere_say_so_and_show_the_way_back(find):
    found = find("/docs/api", q="zzzzzz").text
    assert "Nothing has all of these words." in found
    assert 'href="/docs/api">Show everything' in found
    assert 'class="operation"' not in found


def test_what_is_sought_is_text_and_never_markup(find):
    found = find("/docs/api", q='"><script>alert(1)</script>').text
    assert "<script>" not in found
    assert find("/docs/api", q="x" * 5000).status_code == 200


def test_one_list_of_operations_is_on_every_screen(find):
    style = httpx.URL(find("/docs/api").text.partition("documents.css")[0].rpartition('href="')[2] + "documents.css")
    rules = find(str(style)).text
    assert ".contents ul ul { display: none" not in rules
    assert find("/docs/api").text.count('class="contents"') == 1
