"""Who is held out, and who gets which text, never changes: a campaign or journey that is running would redraw silently.

`draws.json` has, of each of the three draws, a digest over 1,000 results and the first results themselves. The code of
the release that first drew them wrote the file; no change of the code may change it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from uuid import UUID

import pytest

from regulars.experiments.arms import Variant, assign_arm, share_position
from regulars.experiments.holdout.model import draw
from regulars.experiments.sides import random_percent

DRAWN = json.loads((Path(__file__).parent / "draws.json").read_text())
DRAWS = 1_000
RECIPIENTS = 100_000


def ids(name: str) -> Iterator[UUID]:
    for number in range(DRAWS):
        yield UUID(bytes=hashlib.sha256(f"{name} {number}".encode()).digest()[:16])


def sides_of_splits() -> Iterator[list[object]]:
    """The percentages of customers at a split: with the salt of the step, and without one as in older journeys."""
    journey_id = UUID(int=1)
    for profile_id in ids("split"):
        yield [str(profile_id), *(random_percent(journey_id, profile_id, salt=salt) for salt in ("", "welcome"))]


def arms_of_campaigns() -> Iterator[list[object]]:
    """The arms and positions of recipients of a campaign with a holdout and two texts."""
    variants = (Variant(text="A", share=70), Variant(text="B", share=30))
    for profile_id in ids("arm"):
        arm, position = assign_arm(UUID(int=2), profile_id.bytes, holdout_percent=10, variants=variants)
        yield [str(profile_id), arm, position, share_position(position, recipients=RECIPIENTS)]


def global_holdout() -> Iterator[list[object]]:
    """Who is held out in two quarters."""
    for profile_id in ids("holdout"):
        quarters = (date(2026, 10, 1), date(2027, 1, 1))
        drawn = [draw(UUID(int=3), quarter, profile_id, percent=20) for quarter in quarters]
        assert {customer.profile_id for customer in drawn} == {profile_id}
        yield [str(profile_id), *(customer.is_held_out for customer in drawn)]


@pytest.mark.parametrize("results_of", [sides_of_splits, arms_of_campaigns, global_holdout])
def test_a_draw_gives_the_results_that_it_always_gave(results_of: Callable[[], Iterator[list[object]]]):
    results, expected = list(results_of()), DRAWN[results_of.__name__]
    assert results[: len(expected["first"])] == expected["first"]
    assert hashlib.sha256(json.dumps(results).encode()).hexdigest() == expected["digest"]
    assert len(results) == DRAWS
