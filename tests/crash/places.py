"""Where a process can be broken on purpose (`kit/failpoint.py`), in which of them, and how."""

from dataclasses import dataclass
from typing import Final

from regulars.kit.failpoint import Act

SERVER: Final = "server"
WORKER: Final = "worker"
COMMAND: Final = "command"
EVERY_ACT: Final[tuple[Act, ...]] = ("kill", "sleep", "raise", "cut")


@dataclass(frozen=True)
class Place:
    name: str
    where: tuple[str, ...]
    acts: tuple[Act, ...] = ("kill", "sleep")
    # Sprung by the process's beginning or end, and not by traffic.
    is_at_the_edge: bool = False


PLACES: Final = (
    Place("authenticated", (SERVER,), ("kill", "sleep", "raise")),
    Place("write.key_claimed", (SERVER,), EVERY_ACT),
    Place("write.before_commit", (SERVER,), EVERY_ACT),
    Place("write.committed", (SERVER,), ("kill", "sleep", "raise")),
    # Between the line in the log of erasures and the commit.
    Place("erasure.logged", (SERVER,), EVERY_ACT),
    Place("answer.half", (SERVER,), ("kill", "sleep", "cut")),
    Place("fact.taken", (WORKER,), EVERY_ACT),
    Place("journey.entered", (WORKER,), EVERY_ACT),
    Place("campaign.frozen", (WORKER,), EVERY_ACT),
    Place("campaign.prepared", (WORKER,), EVERY_ACT),
    Place("campaign.fed", (WORKER,), EVERY_ACT),
    Place("campaign.ended", (WORKER,), EVERY_ACT),
    Place("lift.computed", (WORKER,), EVERY_ACT),
    # A pause or a cancellation, just before its commit.
    Place("campaign.stopped", (COMMAND,), EVERY_ACT),
    # Between the credits of a customer and their totals.
    Place("attribution.credited", (WORKER,), EVERY_ACT),
    Place("text.claimed", (WORKER,), ("kill", "sleep", "raise")),
    Place("text.sent", (WORKER,), ("kill", "sleep", "raise")),
    Place("delivery.claimed", (WORKER,), ("kill", "sleep", "raise")),
    Place("delivery.answered", (WORKER,), ("kill", "sleep", "raise")),
    Place("sweep", (WORKER,), EVERY_ACT, is_at_the_edge=True),
    Place("migration", (COMMAND,), ("kill", "raise", "cut"), is_at_the_edge=True),
    Place("start", (SERVER, WORKER), ("kill", "sleep", "raise"), is_at_the_edge=True),
    Place("drain", (SERVER, WORKER), ("kill", "sleep", "raise"), is_at_the_edge=True),
)
BY_NAME: Final = {place.name: place for place in PLACES}
