"""The navigation: areas in fixed order. One whose pages are not served, or not for this role, stays out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from regulars.web.access import Action, may
from regulars.web.route import Page
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation, by its path below the organization."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Area:
    label: str
    icon: str
    entries: tuple[Entry, ...]


FIRST_STEPS: Final = "/first-steps"
# The whole house, in its order: what is not built is left out by itself, and appears when its page is served.
AREAS: Final = (
    Area("Home", "home", (Entry("Home", "/"),)),
    Area("First steps", "check", (Entry("First steps", FIRST_STEPS),)),
    Area("Customers", "people", (Entry("Customers", "/customers"), Entry("Segments", "/segments"))),
    Area("Consent", "consent", (Entry("Consent", "/consent"),)),
    Area("Sales", "ticket", (Entry("Tickets", "/tickets"), Entry("Collisions", "/collisions"))),
    Area("Stores", "store", (Entry("Stores", "/stores"),)),
    Area(
        "Automate",
        "automate",
        (
            Entry("Journeys", "/journeys"),
            Entry("Campaigns", "/campaigns"),
            Entry("Messages", "/messages"),
            Entry("Simulator", "/simulator"),
        ),
    ),
    Area("Analyse", "chart", (Entry("Sales", "/analyse/sales"), Entry("Attribution", "/analyse/attribution"))),
    Area(
        "Data",
        "data",
        (Entry("Imports", "/imports"), Entry("Attributes", "/attributes"), Entry("Products", "/products")),
    ),
    Area(
        "Integrate",
        "plug",
        (
            Entry("API keys", "/keys"),
            Entry("Webhooks", "/webhooks"),
            Entry("Request log", "/requests"),
            Entry("API reference", "/reference"),
        ),
    ),
    Area(
        "Settings",
        "gear",
        (
            Entry("Organization", "/settings/organization"),
            Entry("Team", "/settings/team"),
            Entry("Texts", "/settings/texts"),
            Entry("Audit log", "/settings/audit"),
        ),
    ),
)
TAB_AREAS: Final = ("Home", "Customers", "Sales", "Automate")


@dataclass(frozen=True, slots=True)
class ShownEntry:
    label: str
    url: str
    is_here: bool
    # Work that waits for a person, never a total.
    waiting: int


@dataclass(frozen=True, slots=True)
class ShownArea:
    label: str
    icon: str
    url: str
    is_here: bool
    entries: tuple[ShownEntry, ...]

    @property
    def is_in_tab_bar(self) -> bool:
        return self.label in TAB_AREAS


class Navigation:
    """Made once of the pages that are served; shown for one visit."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._needs = {
            page.path: page.needs for page in pages if page.method == "GET" and isinstance(page.needs, Action)
        }

    @property
    def has_search(self) -> bool:
        return "/search" in self._needs

    def shown(self, visit: Visit, here: str, waiting: Mapping[str, int]) -> Sequence[ShownArea]:
        """`here` is the path of the entry that the page belongs to."""
        areas = []
        for area in AREAS:
            entries = tuple(
                ShownEntry(entry.label, visit.url(entry.path), entry.path == here, waiting.get(entry.path, 0))
                for entry in area.entries
                if self._is_open(visit, entry.path)
            )
            if entries:
                is_here = here in {entry.path for entry in area.entries}
                areas.append(ShownArea(area.label, area.icon, entries[0].url, is_here, entries))
        return areas

    def _is_open(self, visit: Visit, path: str) -> bool:
        if path == FIRST_STEPS and not visit.place.shows_first_steps:
            return False
        action = self._needs.get(path)
        return isinstance(action, Action) and may(visit.place.role, action)


# A page that stands in no entry of its own belongs to the first one.
DEMO: Final = "/demo"


def entry_of(path: str) -> str:
    """The entry a page belongs to: the longest that its path begins with."""
    if path == DEMO:
        return "/"
    known = [entry.path for area in AREAS for entry in area.entries]
    fitting = [one for one in known if path == one or (one != "/" and path.startswith(f"{one}/"))]
    return max(fitting, key=len, default="")
