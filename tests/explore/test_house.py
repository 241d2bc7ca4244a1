"""The explorers over a real server: what every page shows, hides, escapes and refuses."""

import json
import re
import threading
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from tests.explore.shop import Shop, open_shop
from tests.support import samples
from tests.support.texts import put_text_on_its_way
from tests.support.waiting import wait_until

from regulars.kit.ids import PROFILE
from regulars.privacy.erasure_log import read_log
from regulars.web import cookies
from regulars.web.access import Role
from regulars.web.mask import phone_groups


@pytest.fixture
def shop(api) -> Shop:
    return open_shop(api)


def test_a_search_for_markup_stays_text(visitor_as):
    owner = visitor_as(Role.OWNER)
    for path in ("/search", "/customers", "/stores"):
        assert "<img" not in owner.get(path, q="\"'><img src=x onerror=alert(1)></script>").text, path


@pytest.mark.parametrize("role", [Role.ANALYST, Role.DEVELOPER])
def test_a_role_without_personal_data_cannot_try_out_names_and_numbers(visitor_as, shop, role):
    visitor, customer = visitor_as(role), shop.customer
    for text in (customer["first_name"], customer["phone_number"]):
        assert "No customer found" in visitor.get("/customers", q=text).text
    found = {
        name: visitor.get("/search", q=customer[name]).status_code for name in ("phone_number", "external_id", "id")
    }
    assert found == {"phone_number": 200, "external_id": 200, "id": 303}
    # A readable boolean identifies no customer.
    assert ">true" in visitor.get(f"/customers/{customer['id']}").text


def test_an_exact_id_or_number_goes_to_its_page(visitor_as, shop):
    owner = visitor_as(Role.MARKETER)

    def target(text):
        return owner.get("/search", q=text).headers.get("location", "").partition(f"/o/{owner.who.slug}")[2]

    customer = f"/customers/{shop.customer['id']}"
    assert target(shop.customer["external_id"]) == target(shop.customer["phone_number"]) == customer
    assert target(f" {shop.customer['id']} ") == customer
    assert target(shop.ticket["id"]) == f"/tickets/{quote(shop.ticket['external_id'], safe='')}"
    assert target(shop.store["external_id"]) == f"/stores/{quote(shop.store['external_id'], safe='')}"
    assert target(shop.number["id"]) == f"/consent/numbers/{shop.number['id']}"
    found = owner.get("/search", q="fictive").text
    assert shop.customer["external_id"] in found


def test_the_question_about_a_date_is_answered_with_the_entry_that_decides(visitor_as, shop):
    owner = visitor_as(Role.OWNER)
    page = f"/customers/{shop.customer['id']}"
    before = owner.get(page, at="2001-01-01T10:00").text
    assert "No, not on" in before
    assert "no consent event before that moment" in before
    after = owner.get(page, at="2100-01-01T10:00").text
    assert "Yes, on" in after
    assert 'href="#ledger-1"' in after
    for nonsense in ("x", "9999-99-99T10:00", "0001-01-01T00:00", "2026-02-30T10:00"):
        assert owner.get(page, at=nonsense).status_code == 200


def test_a_user_who_may_not_see_a_value_reads_why(visitor_as, shop):
    page = f"/customers/{shop.customer['id']}"
    explanation = "is personal data that your role (analyst) does not show. Roles that see it: owner, admin, marketer."
    assert explanation in " ".join(visitor_as(Role.ANALYST).get(page).text.split())
    assert "is personal data that your role" not in visitor_as(Role.OWNER).get(page).text


def test_the_navigation_opens_the_section_of_the_page_and_no_other(visitor_as):
    text = visitor_as(Role.OWNER).get("/campaigns").text
    sections = re.findall(r'<details name="side-area"( open)?>.*?</svg>\s*(\w+)', text, re.DOTALL)
    assert [label for is_open, label in sections if is_open] == ["Automate"]
    assert {"Analyse", "Settings"} < {label for _, label in sections}


def test_an_attribute_has_a_label_and_its_type_only_where_it_helps(visitor_as, api, shop):
    attributes = {"loyaltyTier": "gold", "birth_date": "1990-02-03", "zip_code": "69002"}
    api.post("/v1/profiles", {"external_id": shop.customer["external_id"], "attributes": {"zip_code": "2A"}})
    api.post("/v1/profiles", {"external_id": shop.customer["external_id"], "attributes": attributes})
    page, tag = f"/customers/{shop.customer['id']}", '<span class="tag">'
    card = visitor_as(Role.OWNER).get(page).text.partition('id="attr"')[2].partition("</section>")[0]
    for label in ("Phone number", "Loyalty tier", "Birth date", "Zip code"):
        assert f">{label}</td>" in card
    # The card has that name already.
    assert 'aria-label="Attributes"' not in card
    # A number in an attribute of texts.
    assert (card.count(tag), card.count(f"{tag}text</span>")) == (1, 1)
    hidden = visitor_as(Role.ANALYST).get(page).text
    assert f"{tag}date</span>" in hidden
    assert "1990-02-03" not in hidden


def test_pages_of_a_person_keep_the_navigation_of_the_organization_they_come_from(visitor_as, shop):
    owner = visitor_as(Role.OWNER)
    seen = owner.get("/customers").headers["set-cookie"]
    assert seen.startswith(f"{cookies.LAST_ORGANIZATION}={owner.who.slug};")
    assert "side-nav" not in owner.get("//account").text
    both = {"Cookie": f"{cookies.SESSION_HTTP}={owner.who.token}; {cookies.LAST_ORGANIZATION}={owner.who.slug}"}
    assert "side-nav" in owner.http.get(owner.url("//account"), headers=both).text
    other = {"Cookie": f"{cookies.SESSION_HTTP}={owner.who.token}; {cookies.LAST_ORGANIZATION}=not-theirs"}
    assert "side-nav" not in owner.http.get(owner.url("//account"), headers=other).text


def test_a_page_that_does_not_exist_looks_the_same_inside_and_outside(visitor_as, shop):
    owner = visitor_as(Role.OWNER)
    for path in ("/nowhere", "//nowhere"):
        answer = owner.get(path)
        assert (answer.status_code, answer.text.count('<div class="empty">')) == (404, 1)
        assert answer.text.count("<h1") == 1


def test_the_printed_certificate_begins_with_a_sentence_and_has_no_breadcrumbs(visitor_as, shop):
    page = visitor_as(Role.OWNER).get(f"/consent/numbers/{shop.number['id']}/certificate").text
    assert re.search(r"agreed on [^.]* to be texted by [^.]* and (has not opted out|opted out on)", page)
    assert 'aria-label="Breadcrumb"' not in page
    assert "How to verify this" in page


def test_the_certificate_names_the_brand_its_address_the_person_and_the_words_and_is_printed_from_one_place(
    visitor_as, shop
):
    owner = visitor_as(Role.OWNER)
    page = f"/consent/numbers/{shop.number['id']}/certificate"
    assert "<dt>Address</dt><dd>not recorded</dd>" in owner.get(page).text
    saved = owner.post(
        "/settings/texts/provider", provider="simulator", brand="Corvelle", postal_address="1 rue X, 69002 Lyon",
        fails="0", loses="0", delay_ms="0",
    )  # fmt: skip
    assert saved.status_code == 303
    text = owner.get(page).text
    assert "to be texted by Corvelle" in text
    for name, value in (("Name", "Corvelle"), ("Address", "1 rue X, 69002 Lyon"), ("Name", "Odile Fictive Odile")):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in text
    assert "Words agreed to" in text
    assert text.count(">Print<") == 1
    assert ">Print<" not in owner.get(f"/customers/{shop.customer['id']}").text
    too_long = owner.post("/settings/texts/provider", provider="simulator", postal_address="x" * 161)
    assert too_long.status_code == 400


def test_the_certificate_is_a_document(visitor_as, shop):
    owner = visitor_as(Role.OWNER)
    answer = owner.get(f"/consent/numbers/{shop.number['id']}/certificate.json", at="2100-01-01T10:00")
    assert answer.headers["content-disposition"].startswith("attachment")
    document = answer.json()
    assert document["verification"]["is_whole"] is True
    assert document["question"]["as_known_now"]["may_text"] is True
    assert document["subscription"]["phone_number"] == shop.customer["phone_number"]


def test_a_person_s_data_comes_whole_as_json(visitor_as, shop):
    owner = visitor_as(Role.MARKETER)
    answer = owner.get(f"/customers/{shop.customer['id']}/export.json")
    exported = json.loads(answer.text)
    assert exported["profile"]["first_name"] == "Odile"
    assert sorted(sale["external_id"] for sale in exported["sales_events"]) == [
        shop.ticket["external_id"],
        f"{shop.ticket['external_id']}-R",
    ]
    assert exported["consents"][0]["subscription"]["id"] == shop.number["id"]
    assert len(exported["consents"][0]["history"]) == 1


def test_an_erasure_asks_for_the_id_and_then_takes_the_person_away(visitor_as, shop, server):
    owner = visitor_as(Role.ADMIN)
    page = f"/customers/{shop.customer['id']}"
    asked = owner.get(f"{page}/erase")
    assert f"Type {shop.customer['external_id']} to confirm" in asked.text
    refused = owner.post(f"{page}/erase", confirm="something else")
    assert refused.status_code == 400
    assert "nothing was erased" in refused.text
    assert owner.get(page).status_code == 200
    done = owner.post(f"{page}/erase", confirm=shop.customer["external_id"])
    assert done.status_code == 303
    logged = read_log(Path(server.environment["REGULARS_DATA_DIR"]) / "erasures.log").erasures
    assert shop.customer["id"] in {PROFILE.encode(one.profile_id) for one in logged if one.is_certain}
    assert owner.get(page).status_code == 404
    assert shop.api.get(f"/v1/profiles/{shop.customer['id']}").status == 404
    assert owner.get(f"/tickets/{shop.ticket['id']}").status_code == 200
    assert "Of an erased customer" in owner.get(f"/consent/numbers/{shop.number['id']}").text
    # Who did it is in the audit log, by an id that tells nothing about the person.
    log = owner.get("/settings/audit").text
    assert "customer.erase" in log
    assert shop.customer["id"][-6:] in log
    assert shop.customer["external_id"] not in log


def test_an_erasure_is_answered_when_nothing_is_on_its_way_to_the_person(visitor_as, shop, tenant, api_database_url):
    owner = visitor_as(Role.ADMIN)
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        put_text_on_its_way(connection, tenant.organization_id)
        answered = threading.Event()

        def erase():
            answer = owner.post(f"/customers/{shop.customer['id']}/erase", confirm=shop.customer["external_id"])
            assert answer.status_code == 303
            answered.set()

        asking = threading.Thread(target=erase)
        asking.start()
        left = "SELECT 1 FROM profiles WHERE organization_id = %s"
        wait_until(lambda: connection.execute(left, (tenant.organization_id,)).fetchone() is None)
        assert not answered.wait(0.5)
        connection.execute("DELETE FROM texts WHERE organization_id = %s", (tenant.organization_id,))
        assert answered.wait(20)
        asking.join()


def test_a_collision_is_compared_resolved_and_dismissed(visitor_as, shop):
    marketer = visitor_as(Role.MARKETER)
    page = f"/collisions/{shop.ticket['id']}"
    assert "total_amount_cents" in marketer.get(page).text
    assert shop.ticket["external_id"] in marketer.get("/collisions").text
    refused = marketer.post(f"{page}/dismiss", note=" ")
    assert refused.status_code == 400
    assert marketer.post(f"{page}/dismiss", note="A till in training.").status_code == 303
    assert shop.ticket["external_id"] not in marketer.get("/collisions").text
    assert "A till in training." in marketer.get("/collisions", state="reviewed").text
    assert marketer.post(f"{page}/keep", note="").status_code == 303
    assert "First is right" in marketer.get("/collisions", state="reviewed").text
    assert marketer.get(f"/collisions/{shop.ticket['id']}-R").status_code == 404


def test_filters_narrow_and_no_match_offers_a_way_back(visitor_as, shop):
    owner = visitor_as(Role.OWNER)
    returns = owner.get("/tickets", type="RETURN").text
    assert f"{shop.ticket['external_id']}-R" in returns
    assert "No ticket matches" in owner.get("/tickets", currency="USD").text
    assert owner.get("/tickets", after="x").status_code == 200
    assert shop.ticket["external_id"] in owner.get("/tickets", store=shop.store["external_id"]).text
    assert "No customer found" in owner.get("/customers", q="zzz").text
    assert "No store matches" in owner.get("/stores", q="zzz").text


def test_a_filter_that_cannot_be_read_is_refused_on_the_page_and_in_the_file(visitor_as, shop):
    owner = visitor_as(Role.OWNER)
    for path, odd in (
        ("/tickets", {"from": "garbage"}),
        ("/messages", {"to": "9999-12-31"}),
        ("/tickets", {"type": "x"}),
    ):
        for address in (path, f"{path}.csv"):
            refused = owner.get(address, **odd)
            assert refused.status_code == 400, address
            assert "This filter cannot be read" in refused.text
            assert next(iter(odd.values())) in refused.text
            assert f'href="/o/{owner.who.slug}{path}"' in refused.text


def test_a_number_that_came_with_the_consent_is_the_customer_s(visitor_as, api):
    owner, number = visitor_as(Role.OWNER), samples.phone()
    api.post("/v1/profiles", {"external_id": "C-light"})
    api.post("/v1/subscriptions/opt-in", {**samples.opt_in(), "phone_number": number, "profile_id": "C-light"})
    page = owner.get("/customers").text
    assert phone_groups(number) in page
    assert "none</td>" not in page
    assert f"C-light,,,{number},SUBSCRIBED" in owner.get("/customers.csv").text


def test_do_not_contact_opens_those_who_were_erased_and_withdrawn_the_others(visitor_as, shop):
    owner, identifier = visitor_as(Role.OWNER), shop.number["id"]
    shop.api.post("/v1/subscriptions/opt-out", {"phone_number": shop.number["phone_number"]})
    assert identifier in owner.get("/consent/numbers", status="UNSUBSCRIBED").text
    assert "No number matches" in owner.get("/consent/numbers", status="DO_NOT_CONTACT").text
    shop.api.delete(f"/v1/profiles/{shop.customer['id']}")
    erased = owner.get("/consent/numbers", status="DO_NOT_CONTACT").text
    assert "erased number" in erased
    assert identifier in erased
    assert "No number matches" in owner.get("/consent/numbers", status="UNSUBSCRIBED").text


def test_files_hold_what_the_list_shows_and_no_formula(visitor_as, api):
    open_shop(api, text="=cmd()")
    owner = visitor_as(Role.OWNER)
    customers = owner.get("/customers.csv").text
    assert "'=cmd()" in customers
    assert ",=cmd" not in customers
    assert owner.get("/tickets.csv", type="RETURN").text.count("\r\n") == 2
    assert owner.get("/stores.csv").text.startswith("id,external_id,name,currency")
    assert owner.get("/consent/numbers.csv", status="UNSUBSCRIBED").text.count("\r\n") == 1


def test_an_empty_organization_says_what_will_be_here(visitor_as):
    owner = visitor_as(Role.OWNER)
    assert "Nothing has arrived yet" in owner.get("/").text
    assert "No customers yet" in owner.get("/customers").text
    assert "No tickets yet" in owner.get("/tickets").text
    assert "No stores yet" in owner.get("/stores").text
    assert "No conflict to review" in owner.get("/collisions").text
    assert "No consent yet" in owner.get("/consent/numbers").text


def test_home_says_that_days_begin_in_utc_until_the_time_zone_is_that_of_the_country(visitor_as):
    owner, analyst = visitor_as(Role.OWNER), visitor_as(Role.ANALYST)

    def save(time_zone):
        settings = {"time_zone": time_zone, "locale": "fr-FR", "default_country": "FR"}
        name = samples.unique("Shop")
        return owner.post("/settings/organization", name=name, slug=owner.who.slug, **settings)

    assert save("UTC").status_code == 303
    notice, link = "not at midnight in France", "/settings/organization#f-time_zone"
    assert notice in owner.get("/").text
    assert link in owner.get("/").text
    assert notice in analyst.get("/").text
    assert link not in analyst.get("/").text
    refused = save("America/New_York")
    assert refused.status_code == 400
    assert "France does not have this time zone" in refused.text
    assert save("Europe/Paris").status_code == 303
    assert notice not in owner.get("/").text


def test_home_shows_what_waits_to_be_counted_as_such_and_never_as_no_ticket(visitor_as, api):
    """No worker runs here, so the tickets of the moment before wait."""
    open_shop(api)
    page = visitor_as(Role.OWNER).get("/").text
    assert "Tickets are being counted." in page
    assert "No ticket in" not in page


def test_references_with_any_character_have_a_page(visitor_as, api):
    shop = open_shop(api, code=" a/b%2F?#é")
    owner = visitor_as(Role.OWNER)
    for kind, thing in (("customers", shop.customer), ("tickets", shop.ticket), ("stores", shop.store)):
        path = f"/{kind}/{quote(thing['external_id'], safe='')}"
        assert owner.get(path).status_code == 200, path
    for path in ("/customers/%00", "/customers/%FF", "/tickets/sub_x", "/consent/numbers/nonsense", "/stores/prof_1"):
        assert owner.get(path).status_code == 404, path
