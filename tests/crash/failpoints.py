"""Lists the failpoints (`kit/failpoint.py`), the processes that have them, and the possible acts."""

from dataclasses import dataclass
from typing import Final

from regulars.kit.failpoint import Act

SERVER: Final = "server"
WORKER: Final = "worker"
COMMAND: Final = "command"
EVERY_ACT: Final[tuple[Act, ...]] = ("kill", "sleep", "raise", "cut")


@dataclass(frozen=True)
class Failpoint:
    name: str
    where: tuple[str, ...]
    acts: tuple[Act, ...] = ("kill", "sleep")
    # Hit while the process starts or ends, not by traffic.
    is_start_or_end: bool = False
    # A statement on the organizations that makes the worker reach the failpoint, if traffic may not within seconds.
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
# Campaigns as if sent three weeks ago, so that the window of their results has closed.
LIFTS_DUE: Final = """
INSERT INTO lifts (organization_id, kind, source_id, held_out_share, window_days, first_day, last_day, frozen_on, due_at)
SELECT organization_id, 'campaign', id, 0.1, 7, current_date - 20, current_date - 10, current_date - 20, now()
FROM campaigns WHERE organization_id = ANY (%s)
ON CONFLICT (organization_id, kind, source_id, step, period) DO UPDATE
SET first_day = EXCLUDED.first_day, last_day = EXCLUDED.last_day, frozen_on = EXCLUDED.frozen_on, state = 'open',
    result = NULL, as_of = NULL, owner = NULL, due_at = now()
"""
# Pauses that have just ended.
RESUMED: Final = """
INSERT INTO stopped_origins (organization_id, origin_id, stopped_at, due_at)
SELECT id, gen_random_uuid(), now(), now() FROM organizations WHERE id = ANY (%s)
"""

FAILPOINTS: Final = (
    Failpoint("authenticated", (SERVER,), ("kill", "sleep", "raise")),
    Failpoint("write.key_claimed", (SERVER,), EVERY_ACT),
    Failpoint("write.before_commit", (SERVER,), EVERY_ACT),
    Failpoint("write.committed", (SERVER,), ("kill", "sleep", "raise")),
    # Between the line in the erasure log and the commit.
    Failpoint("erasure.logged", (SERVER,), EVERY_ACT),
    Failpoint("answer.half", (SERVER,), ("kill", "sleep", "cut")),
    Failpoint("fact.taken", (WORKER,), EVERY_ACT),
    Failpoint("journey.entered", (WORKER,), EVERY_ACT),
    Failpoint("campaign.frozen", (WORKER,), EVERY_ACT),
    Failpoint("campaign.prepared", (WORKER,), EVERY_ACT),
    Failpoint("campaign.fed", (WORKER,), EVERY_ACT),
    Failpoint("campaign.ended", (WORKER,), EVERY_ACT),
    Failpoint("lift.computed", (WORKER,), EVERY_ACT, provoked_by=LIFTS_DUE),
    # A pause or a cancellation, just before its commit.
    Failpoint("campaign.stopped", (COMMAND,), EVERY_ACT),
    # Between the credits of a customer and their totals.
    Failpoint("attribution.credited", (WORKER,), EVERY_ACT, provoked_by=CUSTOMERS_DUE),
    # A page of the customers of a global holdout, just before its commit.
    Failpoint("holdout.drawn", (WORKER,), EVERY_ACT, provoked_by=HOLDOUTS_DUE),
    # Between the rows that are due again after a pause and the commit.
    Failpoint("stop.resumed", (WORKER,), EVERY_ACT, provoked_by=RESUMED),
    Failpoint("text.claimed", (WORKER,), ("kill", "sleep", "raise")),
    Failpoint("text.sent", (WORKER,), ("kill", "sleep", "raise")),
    Failpoint("delivery.claimed", (WORKER,), ("kill", "sleep", "raise")),
    Failpoint("delivery.answered", (WORKER,), ("kill", "sleep", "raise")),
    Failpoint("sweep", (WORKER,), EVERY_ACT, is_start_or_end=True),
    Failpoint("migration", (COMMAND,), ("kill", "raise", "cut"), is_start_or_end=True),
    Failpoint("start", (SERVER, WORKER), ("kill", "sleep", "raise"), is_start_or_end=True),
    Failpoint("drain", (SERVER, WORKER), ("kill", "sleep", "raise"), is_start_or_end=True),
)
BY_NAME: Final = {place.name: place for place in FAILPOINTS}
