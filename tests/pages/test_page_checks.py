"""The checks of every page find a fault that shows at one width and in one theme only."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from tests.support.browser import new_context
from tests.support.page_checks import examine

# Each text with an id has too little contrast, in the theme and at the widths that its classes name.
PAGE = """<!doctype html><html lang="en"><head><title>Faults</title><meta name="viewport" content="width=device-width">
<style>
:root, .pale { background: white; color: black } :root .light { color: #eee }
[data-theme=dark], [data-theme=dark] .pale { background: black; color: white }
[data-theme=dark] .light { color: white } [data-theme=dark] .dark { color: #222 }
@media (max-width: 600px) { .wide { display: none } } @media (min-width: 601px) { .narrow { display: none } }
</style></head><body><main><h1>Faults</h1>
<p class="narrow">Phone <b class="light" id="phone-light">word</b> <b class="dark" id="phone-dark">word</b></p>
<p class="wide">Desk <b class="light" id="desk-light">word</b> <b class="dark" id="desk-dark">word</b></p>
<p><b class="light" id="light">word</b> <b class="dark" id="dark">word</b></p>
<input id="nameless"><div style="width: 500px" id="long">Long</div></main></body></html>"""


class PageHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name that `http.server` calls
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_of_a_request: object) -> None:
        """Logs nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), PageHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_each_fault_is_found_at_its_width_and_in_its_theme(chromium, address):
    with new_context(chromium) as context:
        found = set(map(shorten, examine(context.new_page(), address)))
    assert found == {
        ("390 wide", "does not fit", "long"),
        ("390 wide", "label", "nameless"),
        ("1280 wide", "label", "nameless"),
        ("390 wide", "color-contrast", "light"),
        ("1280 wide", "color-contrast", "dark"),
        ("390 wide", "color-contrast", "phone-light"),
        ("390 wide", "color-contrast", "phone-dark"),
        ("1280 wide", "color-contrast", "desk-light"),
        ("1280 wide", "color-contrast", "desk-dark"),
    }


def shorten(finding: tuple[str, ...]) -> tuple[str, str, str]:
    """The width, the fault and the id of the element."""
    width, fault, html = finding if len(finding) == 3 else (finding[0], *finding[2:4])
    return width, fault, html.partition('id="')[2].partition('"')[0]
