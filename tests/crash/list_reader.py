"""Checks I11: reads the list of sales page by page, while other clients add sales."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException

from tests.crash.clients import SALES, Address
from tests.crash.journal import Journal
from tests.crash.shops import Shop

PAGE_SECONDS_MAX = 25
PAGE = 17


class ListReader(threading.Thread):
    def __init__(self, server: Address, shop: Shop, journal: Journal) -> None:
        super().__init__(name="walker", daemon=True)
        self._server = server
        self._shop = shop
        self._journal = journal
        self.stop = threading.Event()
        self.walks = 0
        self.faults: list[str] = []

    def run(self) -> None:
        while not self.stop.is_set():
            known = {
                answer.json()["sales_event"]["external_id"]
                for answer in self._journal.of(self._shop.tag).successes(SALES)
            }
            seen = self._walk(self.stop.is_set)
            if seen is None:
                return
            self.walks += 1
            self.stop.wait(0.1)
            times = Counter(seen)
            missing = [name for name in known if name not in times]
            twice = [name for name, count in times.items() if count > 1]
            if missing or twice:
                self.faults.append(f"I11: a walk missed {missing[:5]} and met {twice[:5]} twice")

    def _walk(self, is_over: Callable[[], bool]) -> list[str] | None:
        """The ids of all sales in list order; None if there was no time to finish."""
        seen: list[str] = []
        cursor = ""
        while not is_over():
            page = self._page(f"{SALES}?limit={PAGE}{cursor}")
            if page is None:
                self.stop.wait(0.05)
                continue
            seen += [sale["external_id"] for sale in page["data"]]
            if not page["has_more"]:
                return seen
            cursor = f"&cursor={page['next_cursor']}"
        return None

    def _page(self, target: str) -> dict[str, list[dict[str, str]]] | None:
        """The page, or None if the request must be repeated."""
        connection = HTTPConnection(*self._server.address, timeout=PAGE_SECONDS_MAX)
        try:
            connection.request("GET", target, headers={"x-api-key": self._shop.key})
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()
        if response.status not in {200, 503}:
            self.faults.append(f"I10: GET {target} answered {response.status}")
        return json.loads(body) if response.status == 200 else None
