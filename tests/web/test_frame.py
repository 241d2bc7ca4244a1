import re

import pytest
from tests.web import house as houses

from regulars.organizations.slugs import change_slug
from regulars.web import csrf
from regulars.web.access import Role

pytestmark = pytest.mark.anyio
HOME = "/o/maison-corvelle/"


@pytest.fixture
async def house(database):
    built = await houses.build(database)
    yield built
    await built.http.aclose()


async def test_a_stranger_is_sent_to_sign_in_and_comes_back(house):
    answer = await house.get("/o/maison-corvelle/customers?q=a%20b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fo%2Fmaison-corvelle%2Fcustomers%3Fq%3Da%2520b"


async def test_a_live_part_whose_session_ended_takes_the_whole_page_to_sign_in(house):
    headers = {"hx-request": "true", "hx-current-url": "http://127.0.0.1:8080/o/maison-corvelle/first-steps?a=b"}
    answer = await house.get("/o/maison-corvelle/customers", **headers)
    assert answer.headers["hx-redirect"] == "/sign-in?next=%2Fo%2Fmaison-corvelle%2Ffirst-steps%3Fa%3Db"
    assert answer.text == ""
    elsewhere = await house.get(HOME, **{**headers, "hx-current-url": "https://evil.example//evil"})
    assert elsewhere.headers["hx-redirect"] == "/sign-in"


async def test_a_stranger_learns_nothing_of_which_organizations_exist(house):
    known, unknown = await house.get(HOME), await house.get("/o/nobody/")
    assert (known.status_code, unknown.status_code) == (303, 303)


async def test_a_member_sees_the_page_in_the_frame_and_text_stays_text(house):
    await house.sign_in()
    answer = await house.get(HOME)
    assert answer.status_code == 200
    assert "Maison Corvelle" in answer.text
    assert "&lt;b&gt;&amp;" in answer.text
    assert "<b>&" not in answer.text


async def test_every_page_carries_the_security_headers_and_is_not_cached(house):
    await house.sign_in()
    for path in (HOME, "/o/maison-corvelle/nothing", "/guest"):
        headers = (await house.get(path)).headers
        if path != "/guest":
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-frame-options"] == "DENY"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


async def test_a_page_has_no_inline_script_or_style(house):
    await house.sign_in()
    text = (await house.get(HOME)).text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text)


async def test_a_user_of_another_organization_gets_404(house):
    await house.sign_in()
    answer = await house.get("/o/other/")
    assert answer.status_code == 404
    assert "There is no page here" in answer.text


async def test_an_old_slug_leads_on_and_keeps_path_and_query(house, database):
    await house.sign_in()
    async with database.transaction() as tx:
        assert await change_slug(tx.connection, house.organization_id, "corvelle", now=tx.now)
    answer = await house.get("/o/maison-corvelle/customers/a%2Fb?x=1")
    assert answer.status_code == 308
    assert answer.headers["location"] == "/o/corvelle/customers/a%2Fb?x=1"


async def test_the_address_of_an_organization_needs_no_slash_at_its_end(house):
    for sign_in in (False, True):
        if sign_in:
            await house.sign_in()
        answer = await house.get("/o/maison-corvelle?period=7d")
        assert (answer.status_code, answer.headers["location"]) == (308, "/o/maison-corvelle/?period=7d")


async def test_a_reference_with_a_slash_is_one_segment_and_literals_win(house):
    who = await house.sign_in()
    answer = await house.get("/o/maison-corvelle/customers/a%2Fb")
    assert answer.text == f"a/b for {who.email} at maison-corvelle"
    assert "A sample" in (await house.get("/o/maison-corvelle/customers/new")).text
    assert (await house.get("/o/maison-corvelle/customers/%FF")).status_code == 404


async def test_a_role_without_the_right_gets_403_and_reads_who_may(house):
    await house.sign_in(Role.ANALYST)
    answer = await house.get("/o/maison-corvelle/settings/team")
    assert answer.status_code == 403
    assert "owner, admin" in answer.text


async def test_the_navigation_has_what_is_served_and_allowed_and_nothing_else(house):
    await house.sign_in(Role.ANALYST)
    text = (await house.get("/o/maison-corvelle/customers")).text
    assert 'href="/o/maison-corvelle/customers" aria-current="page"' in text
    assert "/settings/team" not in text
    assert "Automate" not in text
    await house.sign_in(Role.OWNER)
    assert "/settings/team" in (await house.get(HOME)).text


async def test_work_that_waits_for_a_person_is_counted_beside_its_page(house):
    await house.sign_in()
    text = (await house.get(HOME)).text
    assert '<span class="count">3<span class="only-read"> waiting</span></span>' in text
    assert '<span class="count">99+<span' in text


async def test_what_a_use_case_refuses_is_shown_with_its_status_and_sentence(house):
    await house.sign_in()
    answer = await house.get("/o/maison-corvelle/missing")
    assert answer.status_code == 404
    assert "No profile C-1." in answer.text


async def test_a_page_that_breaks_says_so_in_the_frame(house):
    await house.sign_in()
    answer = await house.get("/o/maison-corvelle/broken")
    assert answer.status_code == 500
    assert "Something went wrong" in answer.text
    assert "planted" not in answer.text
    assert "Maison Corvelle" in answer.text


async def test_another_method_is_refused_with_what_the_address_takes(house):
    await house.sign_in()
    answer = await house.get("/o/maison-corvelle/save")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_form_with_its_token_is_taken_and_says_once_what_was_done(house):
    who = await house.sign_in()
    answer = await house.post("/o/maison-corvelle/save", csrf.token_for(who.token), {"name": "Zoé <3"})
    assert (answer.status_code, answer.headers["location"]) == (303, HOME)
    assert "Saved Zoé &lt;3." in (await house.get(HOME)).text
    assert "Saved Zoé" not in (await house.get(HOME)).text


@pytest.mark.parametrize("token", [None, "", "0" * 64, "é"])
async def test_a_form_without_the_right_token_changes_nothing(house, token):
    await house.sign_in()
    assert (await house.post("/o/maison-corvelle/save", token, {"name": "x"})).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
async def test_a_form_from_another_site_is_refused_even_with_the_token(house, headers):
    who = await house.sign_in()
    answer = await house.post("/o/maison-corvelle/save", csrf.token_for(who.token), {"name": "x"}, **headers)
    assert answer.status_code == 403


async def test_the_right_of_a_form_is_checked_before_its_token(house):
    who = await house.sign_in(Role.DEVELOPER)
    answer = await house.post("/o/maison-corvelle/save", csrf.token_for(who.token), {"name": "x"})
    assert answer.status_code == 403
    assert "Roles that may change types of attributes" in answer.text


async def test_a_guest_s_form_is_bound_to_their_browser(house):
    token = (await house.get("/guest")).text
    assert (await house.post("/guest", token)).status_code == 200
    house.http.cookies.clear()
    assert (await house.post("/guest", token)).status_code == 403


async def test_a_large_or_broken_form_is_refused_without_a_500(house):
    who = await house.sign_in()
    token = csrf.token_for(who.token)
    assert (await house.post("/o/maison-corvelle/save", token, {"name": "x" * 2000})).status_code == 413
    path, form = "/o/maison-corvelle/save", "application/x-www-form-urlencoded"
    for body, kind in ((b"{}", "application/json"), (b"name=%FF", form), (b"name=%00", form), (b"\xff", form)):
        answer = await house.http.post(path, content=body, headers={"content-type": kind})
        assert answer.status_code == 400
    assert (await house.get(f"{HOME}?q=%FF")).status_code == 400


async def test_the_theme_is_a_cookie_that_a_form_sets(house):
    who = await house.sign_in()
    token = csrf.token_for(who.token)
    answer = await house.post("/theme", token, {"theme": "dark", "next": HOME})
    assert (answer.status_code, answer.headers["location"]) == (303, HOME)
    assert 'data-theme="dark"' in (await house.get(HOME)).text
    await house.post("/theme", token, {"theme": "system", "next": "//evil"})
    assert "data-theme" not in (await house.get(HOME)).text


async def test_cookies_over_https_are_bound_to_the_host_and_secure(database):
    house = await houses.build(database, base_url="https://regulars.example")
    cookie = (await house.get("/guest")).headers["set-cookie"]
    assert cookie.startswith("__Host-regulars-guest=")
    for flag in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert flag in cookie
    assert "domain" not in cookie.lower()


async def test_a_public_https_address_counts_as_https_behind_a_silent_proxy(database):
    house = await houses.build(database, base_url="http://regulars.example", public_url="https://regulars.example")
    assert "Secure" in (await house.get("/guest")).headers["set-cookie"]


async def test_plain_http_from_elsewhere_is_warned_about(database):
    house = await houses.build(database, base_url="http://192.0.2.7:8080")
    await house.sign_in()
    assert "came over plain http" in (await house.get(HOME)).text
    house.http.base_url = "http://127.0.0.1:8080"
    await house.sign_in()
    assert "came over plain http" not in (await house.get(HOME)).text
