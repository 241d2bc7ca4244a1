"""How a module declares a page: its path, its permission and its handler. `server.py` lists all pages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from starlette.responses import Response

from regulars.web.access import Action
from regulars.web.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]
# The time to parse a form is proportional to its size, and other requests wait meanwhile.
FORM_BYTES_MAX = 64 << 10
# For forms with long lists, each of which has its own limits.
LARGE_FORM_BYTES_MAX = 1 << 20
FORM_FIELDS_MAX = 500


class Audience(Enum):
    """Who may open a page that is not part of an organization."""

    OPEN = "anyone"
    SIGNED_IN = "signed-in users"


class Harm(Enum):
    """What a route can do if someone else sits at an open session. Pages that only show something need none."""

    CHANGES = "changes what a member can change back"
    STOPS = "stops, withdraws or deletes something, so that less leaves the organization"
    FIGURES = "downloads sums, which name no customer"
    EXPORTS = "lets customers or what they bought leave"
    CONNECTS = "makes a standing connection: a key, a webhook endpoint, an account of a provider"
    GRANTS = "gives rights to people"
    ERASES = "erases people for good"


# Before these the person must have proved recently who they are (`web/confirm.py`).
NEEDS_PROOF = frozenset({Harm.EXPORTS, Harm.CONNECTS, Harm.GRANTS, Harm.ERASES})


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page. If `needs` is an `Action`, the path is below `/o/<slug>` and the user's role is checked; if it is an
    `Audience`, the path is absolute."""

    method: ClassVar[str] = "GET"
    # A placeholder in braces is one segment: `/customers/{customer}`.
    path: str
    needs: Action | Audience
    handle: Handler
    # Forms and downloads declare it.
    harm: Harm | None = None

    @property
    def is_of_organization(self) -> bool:
        return isinstance(self.needs, Action)

    @property
    def needs_proof(self) -> bool:
        return self.harm in NEEDS_PROOF

    @property
    def address(self) -> str:
        """The whole path, with `{slug}` for the organization."""
        return f"/o/{{slug}}{self.path}" if self.is_of_organization else self.path


@dataclass(frozen=True, kw_only=True)
class Form(Page):
    """The target of a form: the token is checked and the fields are read before the handler runs."""

    method: ClassVar[str] = "POST"
    bytes_max: int = FORM_BYTES_MAX
    fields_max: int = FORM_FIELDS_MAX
