import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pyotp
import pytest
from tests.accounts.browser import Browser
from tests.accounts.people import PASSWORD, Staff
from tests.support.tenant import new_tenant
from tests.support.waiting import wait_until_locked

from regulars.web import cookies
from regulars.web.access import Role


def test_the_right_password_opens_the_organization(browser, staff):
    email = staff.hire(Role.OWNER)
    answer = browser.sign_in(email, PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/organizations")
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(cookies.SESSION_HTTP))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Max-Age" not in cookie
    assert browser.is_signed_in


def test_keep_me_signed_in_outlives_the_browser(browser, staff):
    answer = browser.sign_in(staff.hire(Role.OWNER), PASSWORD, keep="on")
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(cookies.SESSION_HTTP))
    assert f"Max-Age={30 * 24 * 3600}" in cookie


@pytest.mark.parametrize(
    ("wanted", "landed"),
    [
        ("/account", "/account"),
        ("//evil.example", "/organizations"),
        ("https://evil.example/", "/organizations"),
        ("/\\evil", "/organizations"),
    ],
)
def test_it_goes_on_only_to_pages_of_this_server(browser, staff, wanted, landed):
    email = staff.hire(Role.OWNER)
    page = browser.http.get("/sign-in", params={"next": wanted})
    answer = browser.fill(page, "/sign-in", email=email, password=PASSWORD)
    assert answer.headers["location"] == landed


def test_a_forged_next_in_the_form_itself_leads_nowhere_either(browser, staff):
    answer = browser.sign_in(staff.hire(Role.OWNER), PASSWORD, next="//evil.example")
    assert answer.headers["location"] == "/organizations"


def test_a_wrong_password_gives_the_form_back_whole_and_says_how_many_tries_are_left(browser, staff):
    email = staff.hire(Role.OWNER)
    answer = browser.sign_in(email, "not the password", keep="on")
    assert answer.status_code == 400
    assert f'value="{email}"' in answer.text
    assert "not the password" not in answer.text
    assert "4 attempts are left in the next 15 minutes" in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert not browser.is_signed_in


def test_sign_in_does_not_reveal_whether_an_address_is_known(browser, staff):
    known = browser.sign_in(staff.hire(Role.OWNER), "not the password").text
    unknown = browser.sign_in("nobody@shop.example", "not the password").text
    assert "The address or the password is wrong." in known
    assert "The address or the password is wrong." in unknown


def test_after_five_failures_one_waits_and_a_link_still_works(browser, staff):
    email = staff.hire(Role.OWNER)
    for _ in range(5):
        assert browser.sign_in(email, "not the password").status_code == 400
    closed = browser.sign_in(email, PASSWORD)
    assert closed.status_code == 429
    assert int(closed.headers["retry-after"]) > 600
    link = staff.password_link(email)
    assert browser.fill(link, password="another long one", repeated="another long one").status_code == 303
    assert browser.is_signed_in


def test_a_session_that_a_browser_brings_along_is_never_taken_up(browser, staff):
    email = staff.hire(Role.OWNER)
    browser.http.cookies.set(cookies.SESSION_HTTP, "chosen-by-somebody-else")
    answer = browser.sign_in(email, PASSWORD)
    tokens = [value for value in answer.headers.get_list("set-cookie") if value.startswith(cookies.SESSION_HTTP)]
    assert len(tokens) == 1
    assert "chosen-by-somebody-else" not in tokens[0]


def test_a_user_cannot_be_signed_in_from_another_site(browser, staff):
    email = staff.hire(Role.OWNER)
    answer = browser.http.post("/sign-in", data={"email": email, "password": PASSWORD})
    assert answer.status_code == 403
    page = browser.get("/sign-in")
    stranger = Browser(str(browser.http.base_url))
    assert stranger.fill(page, "/sign-in", email=email, password=PASSWORD).status_code == 403


def test_signing_out_ends_the_session_on_the_server(browser, staff):
    browser.sign_in(staff.hire(Role.OWNER), PASSWORD)
    token = browser.http.cookies[cookies.SESSION_HTTP]
    assert browser.fill("/account", "/sign-out").status_code == 303
    browser.http.cookies.set(cookies.SESSION_HTTP, token)
    assert not browser.is_signed_in


def test_signing_out_everywhere_ends_every_browser_s_session(browser, server, staff):
    email = staff.hire(Role.OWNER)
    other = Browser(server.url)
    assert browser.sign_in(email, PASSWORD).status_code == other.sign_in(email, PASSWORD).status_code == 303
    assert browser.get("/account/sessions").text.count("<tr>") == 3
    assert browser.fill("/account/sessions", "/account/sessions/all").status_code == 303
    assert not browser.is_signed_in
    assert not other.is_signed_in


def test_a_disabled_user_is_out_at_once(browser, staff):
    email = staff.hire(Role.ADMIN)
    browser.sign_in(email, PASSWORD)
    staff.disable(email)
    assert not browser.is_signed_in
    assert browser.sign_in(email, PASSWORD).status_code == 400


def test_a_new_password_signs_out_the_other_browsers(browser, server, staff):
    email = staff.hire(Role.OWNER)
    other = Browser(server.url)
    browser.sign_in(email, PASSWORD)
    other.sign_in(email, PASSWORD)
    refused = browser.fill("/account", "/account/password", current="wrong", password="x", repeated="y")
    assert refused.status_code == 400
    assert "Wrong password." in refused.text
    assert "Use at least 12 characters" in refused.text
    changed = browser.fill(
        "/account", "/account/password", current=PASSWORD, password="a brand new one", repeated="a brand new one"
    )
    assert changed.status_code == 303
    assert browser.is_signed_in
    assert not other.is_signed_in


def turn_on(browser):
    page = browser.get("/account/second-factor")
    secret = page.text.split('name="secret" value="')[1].split('"')[0]
    done = browser.fill(page, "/account/second-factor", code=pyotp.TOTP(secret).now(), current=PASSWORD)
    assert done.status_code == 303, done.text
    shown = browser.follow(done).text
    listed = shown.split('aria-label="Recovery codes"')[1].split("</ul>")[0]
    codes = [line.split("<")[0] for line in listed.split("<li>")[1:]]
    assert len(codes) == 10
    assert codes[0] not in browser.get("/account/second-factor").text
    return secret, codes


def code_page(browser, email):
    page = browser.sign_in(email, PASSWORD)
    assert page.status_code == 200
    assert "Enter your code" in page.text
    return page


def test_with_a_second_factor_the_password_alone_opens_nothing(browser, server, staff):
    email = staff.hire(Role.OWNER)
    browser.sign_in(email, PASSWORD)
    secret, codes = turn_on(browser)
    other = Browser(server.url)
    page = code_page(other, email)
    assert not other.is_signed_in
    assert other.fill(page, "/sign-in/code", code="000000").status_code == 400
    used = pyotp.TOTP(secret).at(int(time.time()), -1)
    assert other.fill(page, "/sign-in/code", code=used).status_code == 400, "the code that turned it on, or one before"
    onward = other.fill(page, "/sign-in/code", code=pyotp.TOTP(secret).at(int(time.time()), 1))
    assert onward.status_code == 303
    assert other.is_signed_in
    third = Browser(server.url)
    page = code_page(third, email)
    assert third.fill(page, "/sign-in/code", code=codes[3]).status_code == 303
    fourth = Browser(server.url)
    assert fourth.fill(code_page(fourth, email), "/sign-in/code", code=codes[3]).status_code == 400


def test_the_halfway_form_is_bound_to_its_browser(browser, server, staff):
    email = staff.hire(Role.OWNER)
    browser.sign_in(email, PASSWORD)
    _secret, codes = turn_on(browser)
    mine, thief = Browser(server.url), Browser(server.url)
    half = code_page(mine, email).text.split('name="half" value="')[1].split('"')[0]
    answer = thief.fill("/sign-in", "/sign-in/code", half=half, code=codes[0])
    assert answer.headers["location"] == "/sign-in"
    assert not thief.is_signed_in


def test_a_password_that_changed_between_its_check_and_the_code_opens_nothing(browser, server, staff):
    email = staff.hire(Role.OWNER)
    browser.sign_in(email, PASSWORD)
    _secret, codes = turn_on(browser)
    other = Browser(server.url)
    page = code_page(other, email)
    changed = staff.password_link(email)
    Browser(server.url).fill(changed, password="another long one", repeated="another long one")
    sent_back = other.fill(page, "/sign-in/code", code=codes[0])
    assert sent_back.headers["location"] == "/sign-in"
    assert not other.is_signed_in


def test_a_password_that_changes_between_its_check_and_the_session_opens_nothing(browser, staff, api_database_url):
    email = staff.hire(Role.OWNER)
    page = browser.get("/sign-in")
    with ThreadPoolExecutor(1) as threads, psycopg.connect(api_database_url) as changing:
        changing.execute("UPDATE users SET password_hash = NULL WHERE email = %s", (email,))
        signing_in = threads.submit(browser.fill, page, "/sign-in", email=email, password=PASSWORD)
        wait_until_locked(api_database_url)
        changing.commit()
        assert signing_in.result().status_code == 400
    assert not browser.is_signed_in


def test_a_reset_keeps_the_second_factor(browser, server, staff):
    email = staff.hire(Role.OWNER)
    browser.sign_in(email, PASSWORD)
    turn_on(browser)
    other = Browser(server.url)
    done = other.fill(staff.password_link(email), password="another long one", repeated="another long one")
    assert done.headers["location"] == "/sign-in"
    assert not other.is_signed_in


def test_sign_ins_and_failures_are_in_the_log_of_each_organization(browser, staff, api_database_url):
    other = Staff(api_database_url, new_tenant(api_database_url).organization_id)
    email = staff.hire(Role.OWNER)
    assert other.hire(Role.OWNER, email) == email
    for _ in range(3):
        browser.sign_in(email, "not the password")
    browser.sign_in(f"unknown-{email}", PASSWORD)
    browser.sign_in(email, PASSWORD)
    for place in (staff, other):
        assert place.acts() == [
            ("session.sign_in_failed", email, "not signed in", "127.0.0.1"),
            ("session.sign_in", email, email, "127.0.0.1"),
        ]


def test_turning_the_second_factor_off_or_over_needs_a_code_too(browser, staff):
    browser.sign_in(staff.hire(Role.OWNER), PASSWORD)
    _secret, codes = turn_on(browser)
    page = browser.get("/account/second-factor")
    for action in ("/account/second-factor/off", "/account/second-factor/codes"):
        refused = browser.fill(page, action, current=PASSWORD)
        assert refused.status_code == 400
        assert "The code is wrong" in refused.text
    mine = pyotp.random_base32()
    taken = browser.fill(page, "/account/second-factor", current=PASSWORD, secret=mine, code=pyotp.TOTP(mine).now())
    assert taken.status_code == 400
    off = browser.fill(page, "/account/second-factor/off", current=PASSWORD, code=codes[0])
    assert off.status_code == 303
    assert "Turn on second factor" in browser.get("/account/second-factor").text


def test_passwords_are_not_guessed_in_a_session_that_a_user_left_open(browser, staff):
    browser.sign_in(staff.hire(Role.OWNER), PASSWORD)
    new = {"password": "a brand new one", "repeated": "a brand new one"}
    for _ in range(5):
        assert browser.fill("/account", "/account/password", current="a guess", **new).status_code == 400
    closed = browser.fill("/account", "/account/password", current=PASSWORD, **new)
    assert closed.status_code == 429
    assert "Too many attempts" in closed.text


def test_guesses_sent_at_once_do_not_pass_together(browser, staff):
    email = staff.hire(Role.OWNER)
    page = browser.get("/sign-in")
    with ThreadPoolExecutor(12) as threads:
        answers = list(
            threads.map(
                lambda number: browser.fill(page, "/sign-in", email=email, password=f"guess number {number}"), range(12)
            )
        )
    assert sorted(answer.status_code for answer in answers) == [400] * 5 + [429] * 7


def test_a_known_account_joins_with_the_link_and_its_password(browser, server, staff, api_database_url):
    email = staff.hire(Role.ANALYST)
    boss = Staff(api_database_url, new_tenant(api_database_url).organization_id)
    link = boss.invitation(email, Role.OWNER)
    browser.sign_in(email, PASSWORD)
    assert "/o/" in browser.get("/organizations").headers["location"], "no invitation is shown without its link"
    page = browser.get(link)
    assert browser.fill(page, link).status_code == 400
    assert browser.fill(page, link, current="a guess").status_code == 400
    assert len(boss.memberships(email)) == 1
    assert "This account is not mine" in page.text
    stranger = Browser(server.url)
    assert stranger.fill(link, current="another guess").status_code == 400
    joined = stranger.fill(link, current=PASSWORD)
    assert joined.headers["location"] == "/organizations?choose=1"
    assert len(boss.memberships(email)) == 2
    assert stranger.get(link).status_code == 410


def test_odd_input_is_refused_without_a_500(browser):
    for value in ("", "a\x00b", "<script>alert(1)</script>", "x" * 5000, "é@é"):
        assert browser.sign_in(value, "x").status_code == 400, value
        assert browser.sign_in("me@shop.example", value).status_code == 400, value
