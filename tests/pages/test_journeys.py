"""The pages of journeys: what they show, who may act, and what stands in the audit log."""

import re

import psycopg
import pytest
from tests.support import samples
from tests.support.drain_queues import drain_queues
from tests.support.journeys import make_journey
from tests.support.texts import open_at_any_hour

from regulars.texts.model import SkipReason
from regulars.web.access import Role

TEXT = {"do": "send_text", "text": "Hello {{ profile.first_name }}"}
WAIT = {"do": "wait", "days": 3}


@pytest.fixture
def buyer(api):
    """A customer who may be texted."""
    store = api.post("/v1/stores", samples.store()).json()
    profile = api.post("/v1/profiles", samples.profile(first_name="Odile", last_name="Fictive")).json()
    return store, profile


def opt_in(api, profile):
    answer = api.post(
        "/v1/subscriptions/opt-in",
        {
            "phone_number": samples.phone(),
            "consent_source": "WEBSITE",
            "consented_at": samples.ago(minutes=1),
            "profile_id": profile["id"],
        },
    )
    assert answer.status == 201


def id_of(answer) -> str:
    return re.search(r"jrn_\w+", answer.headers["location"])[0]


def test_an_empty_list_says_what_will_be_here(marketer):
    assert "No journeys yet" in marketer.get("/journeys").text
    assert "Choose a template" in marketer.get("/journeys").text


@pytest.mark.parametrize("start", ["thank-you", "welcome", "win-back", "after-return"])
def test_every_template_can_be_activated_as_it_stands(marketer, start):
    journey = id_of(marketer.post("/journeys", start=start))
    assert "before you activate the journey" not in marketer.get(f"/journeys/{journey}").text
    assert marketer.post(f"/journeys/{journey}/activate").status_code == 303
    assert "Live" in marketer.get(f"/journeys/{journey}").text


def test_a_journey_from_nothing_says_what_it_lacks_and_is_not_activated(marketer):
    journey = id_of(marketer.post("/journeys", start="blank"))
    assert "A journey needs at least one step." in marketer.get(f"/journeys/{journey}").text
    assert marketer.post(f"/journeys/{journey}/activate").status_code == 409
    assert marketer.post("/journeys", start="nonsense").status_code == 400


def test_the_flow_shows_what_happened_at_each_step(api, buyer, marketer, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, TEXT, WAIT, trigger="opt_in")
    opt_in(api, buyer[1])
    for _ in range(3):
        drain_queues(api_database_url, tenant.organization_id)
    page = marketer.get(f"/journeys/{journey}").text
    assert "1<small>entered</small>" in page
    listed = marketer.get("/journeys").text
    assert f'/journeys/{journey}/runs">1</a>' in listed
    runs = marketer.get(f"/journeys/{journey}/runs").text
    assert "Odile Fictive" in runs
    run = re.search(r"runs/(run_\w+)", runs)[1]
    trace = marketer.get(f"/journeys/{journey}/runs/{run}").text
    assert "Send a text" in trace
    assert "Hello Odile" in trace
    link = rf'<a[^>]* href="[^"]*/journeys/{journey}/runs/{run}">[^<]+</a>'
    messages = marketer.get("/messages").text
    assert re.search(link, messages)
    text = re.search(r"/messages/(txt_\w+)", messages)[1]
    assert re.search("From the journey " + link, marketer.get(f"/messages/{text}").text)
    timeline = marketer.get(f"/customers/{buyer[1]['id']}", kind="texts").text
    assert re.search(rf'/messages/{text}">Text</a> of the journey {link}', timeline)


def test_a_run_names_every_reason_of_a_skipped_text(api, buyer, marketer, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, TEXT, WAIT, trigger="opt_in")
    opt_in(api, buyer[1])
    for _ in range(2):
        drain_queues(api_database_url, tenant.organization_id)
    run = re.search(r"runs/(run_\w+)", marketer.get(f"/journeys/{journey}/runs").text)[1]
    shown = {}
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        for reason in SkipReason:
            connection.execute(
                "UPDATE texts SET state = 'skipped', reason = %s WHERE organization_id = %s",
                (reason.value, tenant.organization_id),
            )
            page = marketer.get(f"/journeys/{journey}/runs/{run}").text
            shown[reason] = re.search(r"Skipped: ([^<]*)\.", page)[1]
    assert shown[SkipReason.GLOBAL_HOLDOUT] == "global holdout"
    assert not [name for reason, name in shown.items() if name == reason.value and "_" in name]


def test_who_may_not_see_a_person_sees_neither_name_nor_text(api, buyer, visitor_as, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, TEXT, WAIT, trigger="opt_in")
    opt_in(api, buyer[1])
    drain_queues(api_database_url, tenant.organization_id)
    drain_queues(api_database_url, tenant.organization_id)
    analyst = visitor_as(Role.ANALYST)
    runs = analyst.get(f"/journeys/{journey}/runs").text
    run = re.search(r"runs/(run_\w+)", runs)[1]
    for page in (runs, analyst.get(f"/journeys/{journey}/runs/{run}").text):
        assert "Odile" not in page
    by_name = analyst.get(f"/journeys/{journey}/runs", who=buyer[1]["external_id"]).text
    assert "No such customer" in by_name
    assert run in analyst.get(f"/journeys/{journey}/runs", who=buyer[1]["id"]).text
    assert analyst.post(f"/journeys/{journey}/pause").status_code == 403


def test_runs_are_found_by_state_and_by_the_step_they_stand_at(api, buyer, marketer, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, WAIT, trigger="opt_in")
    opt_in(api, buyer[1])
    drain_queues(api_database_url, tenant.organization_id)
    drain_queues(api_database_url, tenant.organization_id)
    for query, is_there in (
        ({"state": "active"}, True),
        ({"state": "ended"}, False),
        ({"step": "1"}, True),
        ({"step": "2"}, False),
    ):
        assert ("Odile Fictive" in marketer.get(f"/journeys/{journey}/runs", **query).text) is is_there, query
    assert "<b>1</b> waiting" in marketer.get(f"/journeys/{journey}").text


def test_it_is_paused_goes_on_and_ends_and_the_audit_log_knows(visitor_as, tenant, api_database_url):
    owner = visitor_as(Role.OWNER)
    journey = make_journey(api_database_url, tenant.organization_id, WAIT, is_live=False)
    for act in ("activate", "pause", "activate", "end"):
        assert owner.get(f"/journeys/{journey}/{act}").status_code == 200
        assert owner.post(f"/journeys/{journey}/{act}").status_code == 303
    assert owner.post(f"/journeys/{journey}/activate").status_code == 409
    copied = id_of(owner.post(f"/journeys/{journey}/duplicate"))
    assert "A journey (copy)" in owner.get(f"/journeys/{copied}").text
    acts = [line.split(",")[3] for line in owner.get("/settings/audit.csv").text.splitlines()[1:]]
    assert acts == ["journey.create", "journey.end", "journey.activate", "journey.pause", "journey.activate"]


def test_after_a_long_pause_it_asks_what_becomes_of_those_who_waited(api, buyer, marketer, api_database_url):
    organization_id = api.tenant.organization_id
    journey = make_journey(api_database_url, organization_id, WAIT, trigger="opt_in")
    opt_in(api, buyer[1])
    drain_queues(api_database_url, organization_id)
    marketer.post(f"/journeys/{journey}/pause")
    with psycopg.connect(api_database_url) as connection:
        late = "UPDATE journeys SET paused_at = now() - interval '3 days' WHERE organization_id = %s"
        connection.execute(late, (organization_id,))
    assert "What happens to waiting customers?" in marketer.get(f"/journeys/{journey}/activate").text
    assert marketer.post(f"/journeys/{journey}/activate").status_code == 400
    assert marketer.post(f"/journeys/{journey}/activate", waiting="end").status_code == 303
    assert "Removed by a user after a long pause" in marketer.get(f"/journeys/{journey}/runs").text


@pytest.mark.parametrize(
    "path",
    [
        "/journeys/nobody",
        "/journeys/jrn_00000000000000000000000000",
        "/journeys/nobody/runs",
        "/journeys/nobody/activate",
    ],
)
def test_an_unknown_journey_is_not_found(marketer, path):
    assert marketer.get(path).status_code == 404


def test_the_home_page_and_search_know_journeys(api, buyer, marketer, tenant, api_database_url):
    journey = make_journey(
        api_database_url, tenant.organization_id, TEXT, WAIT, trigger="opt_in", name="Greeting of Lyon"
    )
    open_at_any_hour(api_database_url, tenant.organization_id)
    opt_in(api, buyer[1])
    for _ in range(3):
        drain_queues(api_database_url, tenant.organization_id)
    assert re.search(r'Sent</span><span class="stat-figure">1<', marketer.get("/").text)
    assert "is paused" not in marketer.get("/").text
    marketer.post(f"/journeys/{journey}/pause")
    assert "Greeting of Lyon is paused" in marketer.get("/").text
    assert f"/journeys/{journey}" in marketer.get("/search", q="greeting of").text
    assert marketer.get("/search", q=journey).headers["location"].endswith(f"/journeys/{journey}")


def test_a_run_that_needs_a_person_is_on_the_home_page_and_tries_again(api, buyer, marketer, api_database_url):
    organization_id = api.tenant.organization_id
    journey = make_journey(api_database_url, organization_id, WAIT, trigger="opt_in", name="Stuck")
    opt_in(api, buyer[1])
    drain_queues(api_database_url, organization_id)
    with psycopg.connect(api_database_url) as connection:
        park = (
            "UPDATE journey_runs SET state = 'parked', due_at = NULL, reason = 'It failed.' WHERE organization_id = %s"
        )
        connection.execute(park, (organization_id,))
    assert "Stuck: 1 customer is stuck" in marketer.get("/").text
    assert '<span class="count">1<' in marketer.get("/journeys").text
    run = re.search(r"runs/(run_\w+)", marketer.get(f"/journeys/{journey}/runs", state="parked").text)[1]
    assert marketer.post(f"/journeys/{journey}/runs/{run}/resume").status_code == 303
    assert marketer.post(f"/journeys/{journey}/runs/{run}/resume").status_code == 409
    assert "1 customer is stuck" not in marketer.get("/").text


def test_a_condition_that_cannot_be_judged_is_on_the_journey_s_page_and_on_the_home_page(
    api, buyer, marketer, tenant, api_database_url
):
    store, profile = buyer
    assert api.post(f"/v1/profiles/{profile['id']}/attributes", {"attributes": {"tier": "Blue"}}).status == 200
    not_gold = {"type": "none", "of": [{"type": "attribute", "key": "tier", "comparison": "is", "value": "Gold"}]}
    branch = {"do": "branch", "if": not_gold, "then": [WAIT], "else": [{"do": "exit"}]}
    journey = make_journey(api_database_url, tenant.organization_id, branch, trigger="purchase", name="At a branch")
    closed = make_journey(
        api_database_url, tenant.organization_id, WAIT, trigger="purchase", name="At the door", filter=not_gold
    )
    assert "a condition has an error" not in marketer.get("/").text
    assert "cannot be evaluated" not in marketer.get(f"/journeys/{journey}").text
    with psycopg.connect(api_database_url) as connection:
        retype = "UPDATE profile_attributes SET type = 'number' WHERE organization_id = %s AND key = 'tier'"
        connection.execute(retype, (tenant.organization_id,))
    api.post("/v1/sales-events", samples.sale(store["id"], profile_id=profile["id"]))
    drain_queues(api_database_url, tenant.organization_id)
    home = marketer.get("/").text
    why = "&#39;Gold&#39; cannot be read as the type of tier"
    assert f"At the door: a condition has an error</a><p>No customer enters. {why}" in home
    assert f"At a branch: a condition has an error</a><p>1 customer waits at a branch. {why}" in home
    assert (
        f"No customer enters, because we cannot check the conditions: {why}" in marketer.get(f"/journeys/{closed}").text
    )
    shown = marketer.get(f"/journeys/{journey}").text
    assert "1 customer waits at a branch whose conditions we cannot check" in shown
    run = re.search(r"runs/(run_\w+)", marketer.get(f"/journeys/{journey}/runs").text)[1]
    trace = marketer.get(f"/journeys/{journey}/runs/{run}").text
    assert "Cannot be checked" in trace
    assert "Waits at a branch whose conditions cannot be checked" in trace
    why_not = marketer.get(f"/journeys/{closed}/runs", who=profile["id"]).text
    assert "No customer enters, because we cannot check the conditions" in why_not


def test_the_page_says_for_each_of_a_customer_s_last_facts_why_no_run_started(
    api, buyer, marketer, tenant, api_database_url
):
    store, profile = buyer
    api.post("/v1/sales-events", samples.sale(store["id"], profile_id=profile["id"], total_amount_cents=100))
    amount = {"type": "amount", "at_least_cents": 5000}
    journey = make_journey(
        api_database_url, tenant.organization_id, WAIT, filter={"type": "all", "of": [amount, {"type": "subscribed"}]}
    )
    api.post("/v1/sales-events", samples.sale(store["id"], profile_id=profile["id"], total_amount_cents=100))
    api.post("/v1/sales-events", samples.sale(store["id"], profile_id=profile["id"], occurred_at=samples.ago(days=9)))
    for _ in range(2):
        drain_queues(api_database_url, tenant.organization_id)
    page = marketer.get(f"/journeys/{journey}/runs", who=profile["external_id"]).text
    assert "The journey was not live when it was recorded." in page
    assert "It was recorded more than 7 days late." in page
    assert "The conditions do not match." in page
    assert "The ticket is at least 50.00: no" in page
