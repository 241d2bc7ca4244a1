"""Takes screenshots of the web application with the demo data.

`python -m tests.support.screenshots` takes the four of the README; `--all FOLDER` takes every page, 1280 and 390 wide,
light and dark.
"""

import argparse
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import Literal
from uuid import UUID

from playwright.sync_api import Browser
from tests.support import database
from tests.support.analysis import running_analysis
from tests.support.browser import DESKTOP, PHONE, context_of, launched
from tests.support.client import get_url, new_http, post_url
from tests.support.crawl import crawl
from tests.support.drain_queues import drain_queues
from tests.support.run_async import run_async
from tests.support.server import running_server
from tests.support.visitor import SignedIn, Visitor

from regulars.accounts import sessions, users
from regulars.demo.fill import fill_with_demo
from regulars.demo.load import DemoPlan
from regulars.demo.people import count_customers
from regulars.kit import vault
from regulars.kit.db import Database
from regulars.kit.settings import Settings
from regulars.organizations import manage
from regulars.organizations.model import Permission
from regulars.server import page_table
from regulars.web.access import Role

IMAGES = Path(__file__).parents[2] / "docs" / "images"
NAME = "Maison Corvelle"
SALES = 20_000
# The secret key of the test servers.
SECRET_KEY = "a key for tests, of more than 32 characters"
# Screenshots of the README: a name, and a path, or the route of a page whose first crawled address is used.
SHOWN = {"home": "/", "customer": "/customers/C0000012", "catalog": "/attributes/loyalty_tier", "keys": "/keys"}
COLOURS: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
TILLS = ("Lyon tills", "Annecy tills", "Nightly resync")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--all", type=Path, metavar="FOLDER", help="every page instead of README's four")
    arguments.add_argument("--sales", type=int, default=SALES, help="tickets of the demo (default: %(default)s)")
    given = arguments.parse_args()
    with demo_server(given.sales) as visitor:
        for browser in launched():
            if given.all is not None:
                show_everything(browser, visitor, given.all)
            else:
                show_in_readme(browser, visitor)


@contextmanager
def demo_server(sales: int) -> Iterator[Visitor]:
    """Runs a server with the demo data, used API keys and counted catalogs; yields its owner."""
    with ExitStack() as stack:
        server_url = stack.enter_context(database.throwaway_server(database.new_data_folder()))
        template = stack.enter_context(database.migrated_template(server_url))
        url = stack.enter_context(database.new_database(server_url, template=template))
        organization_id, who, keys = run_async(fill_demo(url, sales))
        server = stack.enter_context(running_server(url))
        visitor = Visitor(stack.enter_context(new_http()), server.url, who)
        stack.enter_context(running_analysis(server))
        _call(server.url, keys)
        # These pages request counts, which the worker makes afterwards.
        visitor.get("/")
        visitor.get("/consent")
        visitor.post("/attributes/count")
        visitor.post("/products/count")
        drain_queues(url, organization_id)
        visitor.post("/attributes/loyalty_tier/preview", type="enum", values="bronze\nsilver\ngold")
        drain_queues(url, organization_id)
        visitor.post("/segments/count")
        yield visitor


async def fill_demo(url: str, sales: int) -> tuple[UUID, SignedIn, list[str]]:
    opened = Database(url, pool_max=2, statement_timeout_ms=600_000)
    await opened.open()
    try:
        async with opened.connection() as connection:
            organization = await manage.create_organization(connection, NAME)
            secret = (await manage.find_secret_and_country(connection, organization.id)).secret
            keys = [
                (await manage.create_key(connection, organization.id, name, permission=Permission.INGEST))[1]
                for name in TILLS
            ]
        story = DemoPlan(seed=1, sales=sales, customers=count_customers(sales), last_day=date.today())  # noqa: DTZ011  # the demo ends on the day of the machine
        await fill_with_demo(
            opened,
            organization.id,
            story,
            secret=secret,
            vault=vault.of(Settings(secret_key=SECRET_KEY)),
            progress=lambda _part, _count: None,
        )
        async with opened.transaction() as tx:
            person = await users.create_account(tx, email="claire@corvelle.example", name="Claire Renaud")
            await users.join(tx, organization.id, NAME, person.id, Role.OWNER)
            token = await sessions.start_session(
                tx, person.id, is_remembered=False, address="127.0.0.1", agent="Chromium"
            )
            [member] = await users.find_memberships(tx, person.id)
        return organization.id, SignedIn(person.id, person.email, member.slug, token), keys
    finally:
        await opened.close()


def _call(base_url: str, keys: list[str]) -> None:
    """Sends requests as tills do, some of them refused."""
    store = {"external_id": "LYON-01", "name": "Lyon Bellecour"}
    for place, key in enumerate(keys[:-1]):
        for body in (store, {"external_id": "prof_mine"}, {}):
            post_url(f"{base_url}/v1/stores", json=body, headers={"x-api-key": key})
        for _ in range(3 + place):
            get_url(f"{base_url}/v1/stores", headers={"x-api-key": key})
    get_url(f"{base_url}/v1/profiles", headers={"x-api-key": keys[0]})
    # The server writes the request log with a delay.
    time.sleep(3)


def show_in_readme(browser: Browser, visitor: Visitor) -> None:
    seen = {one.page.path: one for one in reversed(crawl(visitor, page_table(Settings()))) if one.status == 200}
    with context_of(browser, visitor, viewport=DESKTOP, device_scale_factor=1) as context:
        tab = context.new_page()
        for name, page in SHOWN.items():
            url = visitor.url(page) if page not in seen else f"{visitor.base_url}{seen[page].path}"
            tab.goto(url)
            tab.screenshot(path=IMAGES / f"{name}.png")


def show_everything(browser: Browser, visitor: Visitor, folder: Path) -> None:
    """Opens each page once per width, and switches the theme on it."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {one.page: one for one in reversed(crawl(visitor, page_table(Settings()))) if one.is_document}
    for width, viewport in ((1280, DESKTOP), (390, PHONE)):
        with context_of(browser, visitor, theme=None, viewport=viewport) as context:
            tab = context.new_page()
            for page, one in pages.items():
                name = re.sub(r"\W+", "-", page.address.removeprefix("/o/{slug}")).strip("-") or "home"
                tab.goto(f"{visitor.base_url}{one.path}")
                for theme in COLOURS:
                    tab.emulate_media(color_scheme=theme)
                    tab.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True, animations="disabled")


if __name__ == "__main__":
    main()
