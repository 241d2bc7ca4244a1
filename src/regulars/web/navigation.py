"""The navigation of the application: its areas and entries. An entry is hidden if its page does not exist, or if the
user's role may not open it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from regulars.web.access import Action, may
from regulars.web.route import Page
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation, by its path below `/o/<slug>`."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Area:
    label: str
    icon: str
    entries: tuple[Entry, ...]


FIRST_STEPS: Final = "/first-steps"
AREAS: Final = (
    Area("Home", "home", (Entry("Home", "/"),)),
    Area("First steps", "check", (Entry("First steps", FIRST_STEPS),)),
    Area("Customers", "people", (Entry("Customers", "/customers"), Entry("Segments", "/segments"))),
    Area("Consent", "consent", (Entry("Consent", "/consent"),)),
    Area("Sales", "ticket", (Entry("Tickets", "/tickets"), Entry("Conflicting tickets", "/collisions"))),
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
    Area(
        "Analyse",
        "chart",
        (
            Entry("Sales", "/analyse/sales"),
            Entry("Customers", "/analyse/customers"),
            Entry("Products", "/analyse/products"),
            Entry("Stores", "/analyse/stores"),
            Entry("Attribution", "/analyse/attribution"),
        ),
    ),
    Area(
        "Data",
        "data",
        (
            Entry("Imports", "/imports"),
            Entry("Customer attributes", "/attributes"),
            Entry("Product properties", "/products"),
        ),
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
            Entry("Attribution", "/settings/attribution"),
            Entry("Audit log", "/settings/audit"),
        ),
    ),
)
# The areas in the tab bar, which narrow screens show instead of the sidebar.
TAB_AREAS: Final = ("Home", "Customers", "Sales", "Automate")


@dataclass(frozen=True, slots=True)
class NavigationLink:
    label: str
    url: str
    is_here: bool
    # The number of items that wait for a user.
    waiting: int


@dataclass(frozen=True, slots=True)
class NavigationArea:
    label: str
    icon: str
    url: str
    is_here: bool
    entries: tuple[NavigationLink, ...]

    @property
    def is_in_tab_bar(self) -> bool:
        return self.label in TAB_AREAS


class Navigation:
    """Stores the permission of every page; `build` makes the navigation for one visit."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._needs = {
            page.path: page.needs for page in pages if page.method == "GET" and isinstance(page.needs, Action)
        }

    @property
    def has_search(self) -> bool:
        return "/search" in self._needs

    def build(self, visit: Visit, current: str, waiting: Mapping[str, int]) -> Sequence[NavigationArea]:
        """Make the navigation for one visit; `current` is the path of its current entry."""
        areas = []
        for area in AREAS:
            entries = tuple(
                NavigationLink(entry.label, visit.url(entry.path), entry.path == current, waiting.get(entry.path, 0))
                for entry in area.entries
                if self._may_open(visit, entry.path)
            )
            if entries:
                is_here = current in {entry.path for entry in area.entries}
                areas.append(NavigationArea(area.label, area.icon, entries[0].url, is_here, entries))
        return areas

    def _may_open(self, visit: Visit, path: str) -> bool:
        if path == FIRST_STEPS and not visit.organization.shows_first_steps:
            return False
        action = self._needs.get(path)
        return isinstance(action, Action) and may(visit.organization.role, action)


# The demo page has no entry of its own; the navigation highlights Home.
DEMO: Final = "/demo"


def entry_of(path: str) -> str:
    """The path of the entry that a page belongs to: the longest one that the page's path begins with."""
    if path == DEMO:
        return "/"
    paths = [entry.path for area in AREAS for entry in area.entries]
    matching = [entry for entry in paths if path == entry or (entry != "/" and path.startswith(f"{entry}/"))]
    return max(matching, key=len, default="")
