"""What the API tells of each answer to a caller with a key, to whoever keeps a log of them."""

from collections.abc import Callable

import msgspec

from regulars.http.route import Caller, Route


class Answered(msgspec.Struct, frozen=True, gc=False):
    """An answer that left. It is made for every request, so it holds only what is at hand."""

    route: Route
    references: tuple[str, ...]
    request_id: str
    status: int
    started: float
    ended: float
    # The body of a refusal; of a success, which may be large, nothing is held.
    problem: bytes


# Called when the answer is on its way. It must not wait for anything.
Note = Callable[[Caller, Answered], None]


def note_nothing(_caller: Caller, _answered: Answered) -> None:
    """For a server that keeps no log."""
