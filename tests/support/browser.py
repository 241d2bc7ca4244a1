"""Runs Chromium, driven by Playwright, for browser tests."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from tests.support.visitor import Visitor

from regulars.web import cookies

AXE = Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 90_000
INSTALL_SECONDS_MAX = 600
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def find_program() -> str:
    """Finds Chromium, or installs it as root; otherwise skips the test with a hint."""
    program = _installed()
    if program is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        command = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
        subprocess.run(command, check=False, capture_output=True, timeout=INSTALL_SECONDS_MAX)
        program = _installed()
    if program is None:
        pytest.skip("Browser tests need Chromium: `apt-get install chromium` as root, then run them again.")
    return program


def _installed() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def launched() -> Iterator[Browser]:
    program = find_program()
    with sync_playwright() as playwright:
        # The sandbox needs privileges that a container rarely has; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    yield from launched()


def context_of(
    browser: Browser,
    visitor: Visitor,
    *,
    theme: str | None = "light",
    viewport: dict[str, int] | None = None,
    **options,
) -> BrowserContext:
    """A browser context in which this user is signed in. Without a theme `emulate_media` decides."""
    context = browser.new_context(viewport=viewport or DESKTOP, **options)
    context.set_default_timeout(WAIT_MS)
    context.add_cookies([{"name": cookies.SESSION_HTTP, "value": visitor.who.token, "url": visitor.base_url}])
    if theme is not None:
        context.add_cookies([{"name": cookies.THEME, "value": theme, "url": visitor.base_url}])
    return context
