"""Simulates a slow network without a clock: pauses requests of a page until the test releases them."""

from playwright.sync_api import Page, Route
from tests.support.browser import WAIT_MS


class PausedRequests:
    """Pauses requests that match the pattern until `open`."""

    def __init__(self, tab: Page, pattern: str) -> None:
        self._tab = tab
        self._paused: list[Route] = []
        self._is_open = False
        tab.route(pattern, self._on_request)

    def wait(self, number: int = 1) -> None:
        """Waits until so many requests are paused."""
        for _ in range(WAIT_MS // 50):
            if len(self._paused) >= number:
                return
            self._tab.wait_for_timeout(50)
        raise AssertionError("The page sent no such request.")

    def open(self) -> None:
        """Releases the paused requests, and lets later ones pass."""
        self._is_open = True
        for route in self._paused:
            route.continue_()
        self._paused.clear()

    def _on_request(self, route: Route) -> None:
        if self._is_open:
            route.continue_()
        else:
            self._paused.append(route)
