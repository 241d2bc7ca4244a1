"""Which touch a purchase is credited to."""

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

from regulars.attribution.model import Origin, Touch, Touches, TouchKind, Windows
from regulars.links.origin_kind import OriginKind

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PERSON = Origin(OriginKind.PERSON)
CLICK, DELIVERY = TouchKind
DEFAULT = Windows()


def touch(kind, hours_before, text=1, *, sent_before=None):
    sent_at = NOON - (hours_before if sent_before is None else sent_before) * HOUR
    return Touch(NOON - hours_before * HOUR, kind, UUID(int=text), sent_at, PERSON)


def choose(*touches, windows=DEFAULT):
    return Touches(touches).choose(NOON, windows)


def test_it_agrees_with_a_plain_search_over_all_touches():
    for seed in range(2_000):
        chance = random.Random(seed)
        windows = Windows(chance.randrange(1, 31), chance.randrange(1, 169))
        touches = [
            touch(chance.choice((CLICK, DELIVERY)), before, text=n, sent_before=before + chance.choice((0, 0, 900)))
            for n in range(chance.randrange(8))
            for before in [chance.randrange(-50, 800)]
        ]
        hours = {CLICK: windows.click_days * 24, DELIVERY: windows.delivery_hours}
        inside = [
            one
            for one in touches
            if timedelta(0) < NOON - one.at <= hours[one.kind] * HOUR and NOON - one.sent_at < 60 * 24 * HOUR
        ]
        expected = max(inside, key=lambda one: (one.kind is CLICK, one.at, one.text_id), default=None)
        chance.shuffle(touches)
        assert choose(*touches, windows=windows) == expected, seed
