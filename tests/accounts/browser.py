"""A browser without a script: it keeps cookies, reads forms from pages and sends them."""

import re
from html import unescape

import httpx
from tests.support.client import CALL_SECONDS_MAX

from regulars.web import csrf

FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Browser:
    def __init__(self, base_url: str) -> None:
        # A connection per request: a test may leave a browser where it stands.
        limits = httpx.Limits(max_keepalive_connections=0)
        self.http = httpx.Client(base_url=base_url, timeout=CALL_SECONDS_MAX, trust_env=False, limits=limits)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(path, headers=headers)

    def follow(self, response: httpx.Response) -> httpx.Response:
        """As far as the redirects go."""
        while response.status_code in {303, 308}:
            response = self.get(response.headers["location"])
        return response

    def fill(self, page: str | httpx.Response, action: str = "", **fields: str) -> httpx.Response:
        """Open the page (or take the one that was answered) and send its form, hidden fields included."""
        shown = self.get(page) if isinstance(page, str) else page
        assert csrf.FIELD in shown.text, shown.text
        hidden = {name: unescape(value) for name, value in FIELD.findall(shown.text)}
        target = action or (page if isinstance(page, str) else str(shown.url))
        return self.http.post(target, data={**hidden, **fields})

    def sign_in(self, email: str, password: str, **fields: str) -> httpx.Response:
        return self.fill("/sign-in", email=email, password=password, **fields)

    @property
    def is_signed_in(self) -> bool:
        return self.get("/account").status_code == 200
