"""Runs Chromium, driven by Playwright, for browser tests."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
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
        # Without the limit, a spare process starts with each page.
        arguments = ["--no-sandbox", "--renderer-process-limit=1"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def hidden_chromium() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """The browser of this process, and the event loop of Playwright.

    The loop counts as running between calls of Playwright too, and no other loop could run on this thread. So it is
    hidden from all but browser tests.
    """
    for browser in launched():
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)


@pytest.fixture
def chromium(hidden_chromium: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    browser, loop = hidden_chromium
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


def block_htmx(tab: Page) -> None:
    """Lets no part of a page refresh itself: it is paler for a moment, which axe would find and is no fault. A route of
    Playwright would switch the cache off, and every page would load its fonts, styles and axe anew."""
    network = tab.context.new_cdp_session(tab)
    network.send("Network.enable")
    network.send("Network.setBlockedURLs", {"urls": ["*htmx*"]})


def add_axe(tab: Page) -> None:
    """Loads axe into a page whose context ignores the content security policy."""
    tab.add_script_tag(url=_axe_url())


@cache
def _axe_url() -> str:
    """The address of a server of this process. The browser caches the script and its bytecode; half a megabyte that is
    part of a page would be compiled on every page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _AxeHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/axe.js"


class _AxeHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name that `http.server` calls
        script = AXE.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript; charset=utf-8")
        self.send_header("Content-Length", str(len(script)))
        self.send_header("Cache-Control", "max-age=86400, immutable")
        self.end_headers()
        self.wfile.write(script)

    def log_message(self, *_of_a_request: object) -> None:
        """Logs nothing."""


def context_of(
    browser: Browser,
    visitor: Visitor,
    *,
    theme: str | None = "light",
    viewport: dict[str, int] | None = None,
    **options,
) -> BrowserContext:
    """A browser context in which this user is signed in. Without a theme `emulate_media` decides."""
    context = new_context(browser, viewport=viewport or DESKTOP, **options)
    add_session(context, visitor, theme=theme)
    return context


def new_context(browser: Browser, **options) -> BrowserContext:
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT_MS)
    return context


def add_session(context: BrowserContext, visitor: Visitor, *, theme: str | None) -> None:
    context.add_cookies([{"name": cookies.SESSION_HTTP, "value": visitor.who.token, "url": visitor.base_url}])
    if theme is not None:
        context.add_cookies([{"name": cookies.THEME, "value": theme, "url": visitor.base_url}])
