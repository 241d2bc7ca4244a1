"""What a page is: an address, who may open it, and the handler. `server.py` lists them all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from starlette.responses import Response

from regulars.web.access import Action
from regulars.web.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]
# What a page does with a form takes time in proportion to its size, and the other visitors wait meanwhile.
FORM_BYTES_MAX = 64 << 10
# For the few forms that hold long lists, each of which has its own limits.
LARGE_FORM_BYTES_MAX = 1 << 20
FORM_FIELDS_MAX = 500


class Door(Enum):
    """For the few pages that belong to no organization."""

    OPEN = "anybody"
    SIGNED_IN = "anybody who is signed in"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A view. With an `Action` the path is below `/o/<slug>` and its role is checked; with a `Door` it is absolute."""

    method: ClassVar[str] = "GET"
    # Placeholders stand in braces, one segment each: `/customers/{customer}`.
    path: str
    needs: Action | Door
    handle: Handler
    # For what does lasting harm in other hands: a session that was left open is not enough.
    asks_password: bool = False

    @property
    def is_of_organization(self) -> bool:
        return isinstance(self.needs, Action)

    @property
    def address(self) -> str:
        """The whole path, with `{slug}` for the organization."""
        return f"/o/{{slug}}{self.path}" if self.is_of_organization else self.path


@dataclass(frozen=True, kw_only=True)
class Form(Page):
    """What a form is sent to: the token is checked and the fields are read before the handler runs."""

    method: ClassVar[str] = "POST"
    bytes_max: int = FORM_BYTES_MAX
    fields_max: int = FORM_FIELDS_MAX
