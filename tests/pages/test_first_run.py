"""From an empty server to the first ticket, in a browser."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest
from tests.support import database
from tests.support.aside import run_aside
from tests.support.browser import DESKTOP, WAIT_MS
from tests.support.server import running_server

from regulars.accounts.welcome import offer_first_owner
from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.web.access import Role

PASSWORD = "four words in a row"


def offer(database_url):
    """What `serve` prints."""

    async def ask():
        pool = Database(database_url, pool_max=2)
        await pool.open()
        try:
            async with pool.transaction() as tx:
                return await offer_first_owner(tx)
        finally:
            await pool.close()

    return run_aside(ask())


@pytest.fixture
def new_server(shared_database):
    url, template = shared_database
    with database.new_database(url, template=template) as fresh, running_server(fresh) as running:
        yield running, offer(fresh)


def set_up(page, server, token):
    page.goto(f"{server.url}/link/{token}")
    page.get_by_label("Name of the organization").fill("Maison Corvelle")
    page.get_by_label("Your name").fill("Claire Démo")
    page.get_by_label("Email").fill("claire@corvelle.example")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat password").fill(PASSWORD)
    page.get_by_role("button", name="Create the organization").click()


def test_the_link_leads_to_the_first_ticket(chromium, new_server):
    server, token = new_server
    context = chromium.new_context(viewport=DESKTOP)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    set_up(page, server, token)
    assert page.url == f"{server.url}/o/maison-corvelle/first-steps"
    page.get_by_text("Waiting for your first ticket").wait_for()
    page.get_by_role("button", name="Create the first key").click()
    key = page.locator(".copy code").first.inner_text()
    assert key.startswith("rgl_")
    send(page.locator("pre", has_text="/v1/stores").inner_text(), key)
    send(page.locator("pre", has_text="/v1/sales-events").inner_text(), key)
    # Nobody touches the page: it looks by itself.
    page.get_by_text("Your first ticket is here").wait_for()
    assert "€19.90 at Rue de Rivoli" in page.locator("#first-ticket").inner_text()
    page.reload()
    assert key not in page.content()
    assert page.get_by_text("3 of 4 steps to connect a till are done").is_visible()
    used = httpx.get(f"{server.url}/link/{token}", trust_env=False)
    assert used.status_code == 410
    context.close()


def send(command, key):
    """What the curl line does."""
    url = re.search(r"curl -s (\S+)", command)[1]
    body = re.search(r"-d '(.*)'", command, re.DOTALL)[1]
    headers = {"x-api-key": key, "content-type": "application/json"}
    assert httpx.post(url, content=body, headers=headers, trust_env=False).status_code == 201


def test_it_works_without_javascript_and_a_refused_form_comes_back_whole(chromium, new_server):
    server, token = new_server
    context = chromium.new_context(viewport=DESKTOP, java_script_enabled=False)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(f"{server.url}/link/{token}")
    page.get_by_label("Name of the organization").fill("Maison Corvelle")
    page.get_by_label("Your name").fill("Claire Démo")
    page.get_by_label("Email").fill("claire@corvelle.example")
    page.get_by_label("Password", exact=True).fill("password1234")
    page.get_by_label("Repeat password").fill("something else")
    page.get_by_role("button", name="Create the organization").click()
    assert page.get_by_role("alert").get_by_role("link", name="one of the first that others would try").is_visible()
    assert page.get_by_label("Your name").input_value() == "Claire Démo"
    assert page.get_by_label("Password", exact=True).input_value() == ""
    set_up(page, server, token)
    page.get_by_role("button", name="Create the first key").click()
    key = page.locator(".copy code").first.inner_text()
    send(page.locator("pre", has_text="/v1/stores").inner_text(), key)
    send(page.locator("pre", has_text="/v1/sales-events").inner_text(), key)
    page.get_by_role("link", name="check again").click()
    assert page.get_by_text("Your first ticket is here").is_visible()
    context.close()


def test_two_who_ask_for_a_demo_at_once_never_share_one(visitor_as, api_database_url):
    """The other one has the name and has not committed yet: the button waits, and takes the next name."""
    owner = visitor_as(Role.OWNER)
    name, other = free_demo_name(api_database_url), new_uuid()
    with psycopg.connect(api_database_url) as connection, ThreadPoolExecutor(1) as threads:
        connection.execute(
            "INSERT INTO organizations (id, name, secret, created_at) VALUES (%s, %s, %s, now())",
            (other, name, bytes(32)),
        )
        click = threads.submit(owner.post, "/first-steps/demo")
        wait_for_lock(api_database_url)
        connection.commit()
        assert click.result().status_code == 303
    with psycopg.connect(api_database_url) as connection:
        members = connection.execute("SELECT count(*) FROM memberships WHERE organization_id = %s", (other,))
        assert members.fetchone() == (0,)


def free_demo_name(url):
    with psycopg.connect(url) as connection:
        taken = {row[0] for row in connection.execute("SELECT name FROM organizations")}
    return next(name for name in ("Demo", *(f"Demo {number}" for number in range(2, 50))) if name not in taken)


def wait_for_lock(url):
    deadline = time.monotonic() + WAIT_MS / 1000
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            waiting = connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
            if waiting.fetchone():
                return
            time.sleep(0.02)
    raise AssertionError("nobody waited for the name")
