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
    # A statement about the organizations that brings the worker there: traffic may not, within seconds.
    provoked_by: str = ""


CUSTOMERS_DUE: Final = """
INSERT INTO attribution_customers (organization_id, profile_id, since, due_at)
SELECT organization_id, id, now(), now() FROM profiles WHERE organization_id = ANY (%s)
ON CONFLICT (organization_id, profile_id) DO UPDATE SET due_at = now()
"""
HOLDOUTS_DUE: Final = """
INSERT INTO holdouts (organization_id, percent, with_journeys, changed_at, due_at)
SELECT id, 10, false, now(), now() FROM organizations WHERE id = ANY (%s)
ON CONFLICT (organization_id) DO NOTHING
"""
# Campaigns as if they had been sent three weeks ago, so that the window of their results has closed.
LIFTS_DUE: Final = """
INSERT INTO lifts (organization_id, kind, source_id, held_out_share, window_days, first_day, last_day, frozen_on, due_at)
SELECT organization_id, 'campaign', id, 0.1, 7, current_date - 20, current_date - 10, current_date - 20, now()
FROM campaigns WHERE organization_id = ANY (%s)
ON CONFLICT (organization_id, kind, source_id, step, period) DO UPDATE
SET first_day = EXCLUDED.first_day, last_day = EXCLUDED.last_day, frozen_on = EXCLUDED.frozen_on, state = 'open',
    result = NULL, as_of = NULL, owner = NULL, due_at = now()
"""

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
    Place("lift.computed", (WORKER,), EVERY_ACT, provoked_by=LIFTS_DUE),
    # A pause or a cancellation, just before its commit.
    Place("campaign.stopped", (COMMAND,), EVERY_ACT),
    # Between the credits of a customer and their totals.
    Place("attribution.credited", (WORKER,), EVERY_ACT, provoked_by=CUSTOMERS_DUE),
    # A page of the customers of a global holdout, just before its commit.
    Place("holdout.drawn", (WORKER,), EVERY_ACT, provoked_by=HOLDOUTS_DUE),
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
