import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pyotp
import pytest

from regulars.accounts import sign_in_attempts as attempts
from regulars.accounts.errors import TooManyAttempts
from regulars.accounts.model import IDLE_MAX, SESSION_AGE_MAX, Session, read_email
from regulars.accounts.passwords import Passwords, find_weakness
from regulars.accounts.second_factor import STEP_S, matching_step, new_setup
from regulars.accounts.sessions import SessionStore, browser_of, start_session
from regulars.accounts.sign_in import begin_attempt
from regulars.kit.db import Tx

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "Passw0rd!2026",
        "123456789012",
        "aaaaaaaaaaaa",
        "qwertyuiop123",
        "welcome welcome",
        "Iloveyou2024!",
        "abcabcabcabc",
        "me@shop.example",
        "correct horse battery staple",
        "motdepasse2026",
        "210987654321",
        "mailcreated5240",
        "FinalFantasy",
        "liverpool-arsenal",
        "123456789987654321",
    ],
)
def test_common_passwords_are_refused_however_they_are_decorated(password):
    assert find_weakness(password, email="me@shop.example") is not None


@pytest.mark.parametrize(
    "password",
    ["four words in a row", "kohlrabi-Fenster", "d7Gh29skPqLm", "ünîcödé wörds", "x" * 3 + " unrelated " + "y" * 3],
)
def test_long_unusual_passwords_are_taken_without_rules_about_characters(password):
    assert find_weakness(password, email="me@shop.example") is None


@pytest.mark.parametrize("password", ["short", "elevenchars", "x" * 257])
def test_a_password_has_12_to_256_characters(password):
    assert find_weakness(password) is not None


@pytest.mark.anyio
async def test_a_password_is_stored_as_argon2id_and_matches_only_itself():
    passwords = Passwords()
    stored = await passwords.hash("four words in a row")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert await passwords.matches(stored, "four words in a row")
    assert not await passwords.matches(stored, "four words in a roW")
    assert not await passwords.matches(None, "four words in a row")


@pytest.mark.parametrize(
    ("text", "email"),
    [
        (" Me@Shop.Example ", "me@shop.example"),
        ("a@localhost", "a@localhost"),
        ("a@b", None),
        ("a b@c.d", None),
        ("", None),
        ("a" * 250 + "@b.cd", None),
        ("a\x00@b.cd", None),
    ],
)
def test_an_address_is_stored_in_one_spelling(text, email):
    assert read_email(text) == email


def session(**changed):
    given = {
        "id": UUID(int=1),
        "user_id": UUID(int=2),
        "created_at": NOW,
        "last_seen_at": NOW,
        "idle": IDLE_MAX,
        "ends_at": NOW + SESSION_AGE_MAX,
        "password_confirmed_at": NOW,
        "address": None,
        "agent": None,
    }
    return Session(**{**given, **changed})


def test_a_session_ends_by_rest_and_by_age():
    assert session().is_alive(NOW + IDLE_MAX - timedelta(seconds=1))
    assert not session().is_alive(NOW + IDLE_MAX)
    seen = session(last_seen_at=NOW + SESSION_AGE_MAX - timedelta(seconds=1))
    assert not seen.is_alive(NOW + SESSION_AGE_MAX)


@pytest.mark.anyio
async def test_a_session_that_was_idle_too_long_identifies_no_user(database):
    async with database.transaction() as tx:
        user = uuid4()
        await tx.execute(
            "INSERT INTO users (id, email, name, created_at) VALUES (%s, 'a@b.cd', 'A', %s)", (user, tx.now)
        )
        fresh = await start_session(tx, user, is_remembered=False, address="", agent="")
        long_ago = Tx(tx.connection, tx.now - timedelta(hours=12, minutes=1))
        stale = await start_session(long_ago, user, is_remembered=False, address="", agent="")
        remembered = await start_session(long_ago, user, is_remembered=True, address="", agent="")
    door = SessionStore(database)
    assert await door.identify(fresh) is not None
    assert await door.identify(stale) is None
    assert await door.identify(remembered) is not None
    assert await door.identify("é made up") is None


def test_a_code_counts_one_step_around_and_never_again():
    secret, at = pyotp.random_base32(), 1_000_000 * STEP_S
    code = pyotp.TOTP(secret).at(at)
    assert matching_step(secret, code, at, after=None) == 1_000_000
    assert matching_step(secret, code, at + STEP_S, after=None) == 1_000_000
    assert matching_step(secret, code, at + 2 * STEP_S, after=None) is None
    assert matching_step(secret, code, at, after=1_000_000) is None
    assert matching_step(secret, "é", at, after=None) is None


def test_the_picture_of_a_secret_has_no_style_and_no_script():
    setup = new_setup("me@shop.example")
    assert setup.qr_svg.startswith("<svg")
    assert "style" not in setup.qr_svg
    assert "script" not in setup.qr_svg
    assert "issuer=Regulars" in setup.uri


@pytest.mark.parametrize(
    ("address", "place"), [("203.0.113.9", "203.0.113.9"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"), ("", "unknown")]
)
def test_an_ipv6_network_counts_as_one_place(address, place):
    assert attempts.network_of(address) == place


async def invite_user(database, email):
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO users (id, email, name, created_at) VALUES (%s, %s, 'Me', %s)", (uuid4(), email, tx.now)
        )


async def fail(database, email, address, times=1):
    for _ in range(times):
        await begin_attempt(database, email, address)


@pytest.mark.anyio
async def test_failures_of_strangers_do_not_lock_a_user_out_at_a_known_address(database):
    email, home = "me@shop.example", "198.51.100.7"
    await invite_user(database, email)
    async with database.transaction() as tx:
        await attempts.record_success(tx, await attempts.count_attempt(tx, email, home))
    for number in range(attempts.ACCOUNT_FAILURES_MAX):
        await fail(database, email, f"203.0.113.{number}")
    with pytest.raises(TooManyAttempts):
        await begin_attempt(database, email, "192.0.2.1")
    assert (await begin_attempt(database, email, home)).left == attempts.PAIR_FAILURES_MAX - 1
    async with database.transaction() as tx:
        later = Tx(tx.connection, tx.now + attempts.WINDOW)
        await attempts.count_attempt(later, email, "192.0.2.1")
        assert await tx.fetch("SELECT count(*) FROM sign_in_failures") == [(3,)]


@pytest.mark.anyio
async def test_one_address_may_fail_on_many_accounts_only_so_often(database):
    for number in range(attempts.ADDRESS_FAILURES_MAX):
        await fail(database, f"user{number}@shop.example", "203.0.113.9")
    with pytest.raises(TooManyAttempts) as refused:
        await begin_attempt(database, "somebody@shop.example", "203.0.113.9")
    assert 0 < refused.value.wait_s <= attempts.WINDOW.total_seconds()


@pytest.mark.anyio
async def test_behind_one_proxy_those_who_are_known_there_still_sign_in(database):
    email, proxy = "me@shop.example", "10.0.0.1"
    await invite_user(database, email)
    async with database.transaction() as tx:
        await attempts.record_success(tx, await attempts.count_attempt(tx, email, proxy))
    for number in range(attempts.ADDRESS_FAILURES_MAX):
        await fail(database, f"user{number}@shop.example", proxy)
    with pytest.raises(TooManyAttempts):
        await begin_attempt(database, "stranger@shop.example", proxy)
    assert (await begin_attempt(database, email, proxy)).left > 0


@pytest.mark.anyio
async def test_of_guesses_at_once_only_as_many_are_checked_as_may_fail(database):
    async def is_checked() -> bool:
        try:
            await begin_attempt(database, "me@shop.example", "203.0.113.9")
        except TooManyAttempts:
            return False
        return True

    # As many as the pool has connections: a guess that waits for one may be refused for that alone.
    checked = await asyncio.gather(*(is_checked() for _ in range(10)))
    assert sum(checked) == attempts.PAIR_FAILURES_MAX


@pytest.mark.anyio
async def test_a_right_password_whose_code_is_missing_takes_no_failure_away(database):
    email, place = "me@shop.example", "203.0.113.9"
    await fail(database, email, place, times=3)
    attempt = await begin_attempt(database, email, place)
    assert attempt.left == 1
    async with database.transaction() as tx:
        await attempts.uncount(tx, attempt)
    assert (await begin_attempt(database, email, place)).left == 1


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit Safari/604.1", "Safari on iPhone"),
        (None, "Unknown browser"),
        ("curl/8.5", "curl/8.5"),
    ],
)
def test_a_browser_is_named_in_a_few_words(agent, shown):
    assert browser_of(agent) == shown
