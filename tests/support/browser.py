"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from tests.support.visitor import Visitor

from regulars.web import cookies

AXE = Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 30_000
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def launched() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program is not None, "Browser tests need Chromium; install Debian's package chromium."
    with sync_playwright() as playwright:
        # The sandbox needs rights that a container seldom has; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    yield from launched()


def context_of(
    browser: Browser, visitor: Visitor, *, theme: str = "light", viewport: dict[str, int] | None = None, **options
) -> BrowserContext:
    """A browser profile in which this person is signed in."""
    context = browser.new_context(viewport=viewport or DESKTOP, **options)
    context.set_default_timeout(WAIT_MS)
    context.add_cookies(
        [
            {"name": cookies.SESSION_HTTP, "value": visitor.who.token, "url": visitor.base_url},
            {"name": cookies.THEME, "value": theme, "url": visitor.base_url},
        ]
    )
    return context
