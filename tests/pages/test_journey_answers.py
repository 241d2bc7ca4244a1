"""What the pages of a journey answer: who stayed out, who is behind a figure, which customer of a name is meant."""

import html
import re

from tests.support import samples
from tests.support.drain_queues import drain_queues
from tests.support.journeys import make_journey

WAIT = {"do": "wait", "days": 3}
COSTLY = {"type": "amount", "at_least_cents": 100_000}


def buy(api, name: str, cents: int = 5_000) -> dict[str, str]:
    store = api.post("/v1/stores", samples.store()).json()["id"]
    profile = api.post("/v1/profiles", samples.profile(first_name=name, last_name="Fictive")).json()
    line = samples.line(total_price_cents=cents)
    api.post(
        "/v1/sales-events",
        samples.sale(store, profile_id=profile["id"], total_amount_cents=cents, line_items=[line]),
    )
    return profile


def words_of(page) -> str:
    """What a person reads: no tags, no addresses."""
    body = re.sub(r"<(script|style).*?</\1>", "", page.text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_who_stays_out_at_only_if_is_counted(api, marketer, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, WAIT, filter=COSTLY)
    for name, cents in (("Odile", 5_000), ("Inès", 7_000), ("Zoé", 200_000)):
        buy(api, name, cents)
    for _ in range(2):
        drain_queues(api_database_url, tenant.organization_id)
    shown = words_of(marketer.get(f"/journeys/{journey}"))
    assert "2 did not match" in shown
    assert "1 entered" in shown
    refused = words_of(marketer.post(f"/journeys/{journey}/backtest", days="0"))
    assert "A whole number from 1" in refused
    assert "Customers 1 " in refused


def test_a_backtest_says_what_it_plays_and_opens_the_customers_behind_its_figures(
    api, marketer, tenant, api_database_url
):
    journey = make_journey(api_database_url, tenant.organization_id, WAIT, is_live=False, filter=COSTLY)
    odile, zoe = buy(api, "Odile"), buy(api, "Zoé", 200_000)
    marketer.post(f"/journeys/{journey}/backtest", days="30")
    drain_queues(api_database_url, tenant.organization_id)
    shown = words_of(marketer.get(f"/journeys/{journey}/backtest"))
    assert "Purchases of known customers checked: 2." in shown
    assert "Did not match the conditions 1" in shown
    for figure, customer, other in (("entries", zoe, odile), ("filter", odile, zoe)):
        opened = marketer.get(f"/journeys/{journey}/backtest", people=figure).text
        assert f"/customers/{customer['id']}" in opened
        assert f"/customers/{other['id']}" not in opened
    page = words_of(marketer.get(f"/journeys/{journey}/activate"))
    assert "1 customer would have entered in the last 30 days" in page
    assert re.search(r"only if [^;]*1000.00", page)


def test_a_customer_is_found_by_name_and_chosen_among_namesakes(api, marketer, tenant, api_database_url):
    text = {"do": "send_text", "text": "Hello {{ profile.first_name }}"}
    journey = make_journey(api_database_url, tenant.organization_id, text, is_live=False)
    twins, zoe = [buy(api, "Odile") for _ in range(2)], buy(api, "Zoé")
    measure = {"place": "1", "kind": "send_text", "text": text["text"]}
    segment = {"name": "Named", "r~kind": "all", "r.0~kind": "named"}
    for ask in (
        lambda who: marketer.get(f"/journeys/{journey}/runs", who=who),
        lambda who: marketer.post(f"/journeys/{journey}/edit/measure", who=who, **measure),
        lambda who: marketer.post("/segments/draft", who=who, **segment),
    ):
        several = ask("odile fic").text
        for one in twins:
            assert f'name="who" value="{one["external_id"]}"' in several
        assert "Which customer?" not in ask("Zoé").text
        assert "Which customer?" not in ask(twins[0]["external_id"]).text
        assert "number or id" in ask("nobody of this name").text.lower()
    assert "Hello Zoé" in marketer.post(f"/journeys/{journey}/edit/measure", who="zoe", **measure).text
    assert "Entered the journey" not in marketer.get(f"/journeys/{journey}/runs", who=zoe["id"]).text


def test_no_page_names_a_step_by_a_code(marketer, tenant, api_database_url):
    faulty = {"do": "send_text", "text": "{{ profile.shoe }}"}
    branch = {"do": "branch", "if": {"type": "subscribed"}, "then": [WAIT, faulty], "else": [WAIT]}
    journey = make_journey(api_database_url, tenant.organization_id, branch, is_live=False)
    for path in ("", "/edit", "/edit?step=1.then.2", "/activate", "/runs"):
        read = words_of(marketer.get(f"/journeys/{journey}{path}"))
        assert not re.search(r"\d\.(then|else)", read), path
    assert "1, Yes, 2. Send a text" in words_of(marketer.get(f"/journeys/{journey}/activate"))
    refused = marketer.post(f"/journeys/{journey}/activate")
    assert refused.status_code == 409
    assert "It cannot run: There is no field profile.shoe" in words_of(refused)
    assert "1.then" not in words_of(refused)
