"""A slow line, without a clock: answers that wait until the test lets them through."""

from playwright.sync_api import Page, Route
from tests.support.browser import WAIT_MS


class SlowLine:
    """Holds what matches back until it is let through; what was let through before stays as it was."""

    def __init__(self, tab: Page, pattern: str) -> None:
        self._tab = tab
        self._held: list[Route] = []
        self._is_open = False
        tab.route(pattern, self._take)

    def wait(self, number: int = 1) -> None:
        """Until so many requests wait."""
        for _ in range(WAIT_MS // 50):
            if len(self._held) >= number:
                return
            self._tab.wait_for_timeout(50)
        raise AssertionError("Nothing was asked for.")

    def open(self) -> None:
        """Let everything through, from now on."""
        self._is_open = True
        for route in self._held:
            route.continue_()
        self._held.clear()

    def _take(self, route: Route) -> None:
        if self._is_open:
            route.continue_()
        else:
            self._held.append(route)
