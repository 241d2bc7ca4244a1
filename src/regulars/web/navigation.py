"""The navigation of the application: its areas and entries. An entry is hidden if its page does not exist, or if the
user's role may not open it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from regulars.web.access import Action, may
from regulars.web.page_names import ENTRY_WORDS, OTHER_NAMES
from regulars.web.route import Audience, Page
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True)
class Area:
    """An area of the navigation; `entries` has the labels of its pages, and their paths below `/o/<slug>`."""

    label: str
    icon: str
    entries: Mapping[str, str]


FIRST_STEPS: Final = "/first-steps"
# What a developer finds: the address of the server, a key, and the first requests.
DEVELOPER_STEPS: Final = f"{FIRST_STEPS}/developer"
AREAS: Final = (
    Area("Home", "home", {"Home": "/"}),
    Area("First steps", "check", {"First steps": FIRST_STEPS}),
    Area("Customers", "people", {"Customers": "/customers", "Segments": "/segments"}),
    Area("Consent", "consent", {"Consent": "/consent"}),
    Area("Sales", "ticket", {"Tickets": "/tickets", "Conflicting tickets": "/collisions"}),
    Area("Stores", "store", {"Stores": "/stores"}),
    Area(
        "Automate",
        "automate",
        {"Journeys": "/journeys", "Campaigns": "/campaigns", "Messages": "/messages", "Simulator": "/simulator"},
    ),
    Area(
        "Analyse",
        "chart",
        {
            "Sales": "/analyse/sales",
            "Customers": "/analyse/customers",
            "Products": "/analyse/products",
            "Stores": "/analyse/stores",
            "Attribution": "/analyse/attribution",
            "Explore": "/analyse/explore",
        },
    ),
    Area(
        "Data", "data", {"Imports": "/imports", "Customer attributes": "/attributes", "Product properties": "/products"}
    ),
    Area(
        "Integrate",
        "plug",
        {"API keys": "/keys", "Webhooks": "/webhooks", "Request log": "/requests", "API reference": "/reference"},
    ),
    Area(
        "Settings",
        "gear",
        {
            "Organization": "/settings/organization",
            "Team": "/settings/team",
            "Texts": "/settings/texts",
            "Attribution": "/settings/attribution",
            "Server": "/settings/server",
            "Audit log": "/settings/audit",
        },
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
    def waiting(self) -> int:
        return sum(entry.waiting for entry in self.entries)

    @property
    def is_in_tab_bar(self) -> bool:
        return self.label in TAB_AREAS


@dataclass(frozen=True, slots=True)
class NamedPage:
    """A page or setting that a search can find; `area` is the area of the navigation that has it."""

    label: str
    url: str
    area: str
    words: str


class Navigation:
    """Stores the permission of every page; `build` makes the navigation for one visit."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._needs = {page.path: page.needs for page in pages if page.method == "GET"}

    @property
    def has_search(self) -> bool:
        return "/search" in self._needs

    def build(self, visit: Visit, current: str, waiting: Mapping[str, int]) -> Sequence[NavigationArea]:
        """Make the navigation for one visit; `current` is the path of its current entry."""
        areas = []
        for area in AREAS:
            entries = tuple(
                NavigationLink(label, visit.url(path), path == current, waiting.get(path, 0))
                for label, path in area.entries.items()
                if self._may_open(visit, path)
            )
            if entries:
                is_here = current in area.entries.values()
                areas.append(NavigationArea(area.label, area.icon, entries[0].url, is_here, entries))
        return areas

    def list_pages(self, visit: Visit) -> list[NamedPage]:
        """List the pages and settings that the visitor's role may open."""
        entries = [
            NamedPage(label, visit.url(path), area.label if len(area.entries) > 1 else "", ENTRY_WORDS.get(path, ""))
            for area in AREAS
            for label, path in area.entries.items()
            if self._may_open(visit, path)
        ]
        others = []
        for label, path, words in OTHER_NAMES:
            needs = self._needs.get(path.partition("#")[0])
            if needs is Audience.SIGNED_IN:
                others.append(NamedPage(label, path, "Account", words))
            elif isinstance(needs, Action) and may(visit.organization.role, needs):
                others.append(NamedPage(label, visit.url(path), _area_of(path), words))
        return entries + others

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
    paths = [entry for area in AREAS for entry in area.entries.values()]
    matching = [entry for entry in paths if path == entry or (entry != "/" and path.startswith(f"{entry}/"))]
    return max(matching, key=len, default="")


def _area_of(path: str) -> str:
    """The label of the area of a page without an entry of its own."""
    entry = entry_of(path.partition("#")[0])
    return next((area.label for area in AREAS if entry in area.entries.values()), "")
