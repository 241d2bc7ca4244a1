"""Lists, previews and saves an organization's attribution windows: how long after a text or a click a purchase is
credited to it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from typing import Final, NamedTuple
from uuid import UUID

from regulars.attribution.compute import load_credits_by_windows
from regulars.attribution.model import (
    CLICK_DAYS_MAX,
    DELIVERY_HOURS_MAX,
    FROZEN_AFTER,
    LIFT_DAYS_MAX,
    Attributed,
    Credit,
    Windows,
)
from regulars.attribution.queries import sums_of
from regulars.attribution.recompute import request_recompute
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at

VERSIONS_LISTED_MAX: Final = 100
# A preview computes the credits of the customers of about this many texts.
SAMPLE_TEXTS: Final = 2_000
_LIMITS: Final = {
    "click_days": (CLICK_DAYS_MAX, "The window after a click is 1 to {} days."),
    "delivery_hours": (DELIVERY_HOURS_MAX, "The window after a delivery is 1 to {} hours."),
    "lift_days": (LIFT_DAYS_MAX, "Lift is measured for 1 to {} days after the last text."),
}


class WindowsVersion(NamedTuple):
    """A version of the windows; version 0 has the defaults."""

    version: int
    windows: Windows
    created_at: datetime | None = None
    created_by: str | None = None


class WindowsChanged(Exception):
    """Another person changed the windows meanwhile."""


class WindowsPreview(NamedTuple):
    """Sums by currency over the last 60 days, with the present windows (`before`) and the new windows (`after`)."""

    before: Mapping[str, Attributed]
    after: Mapping[str, Attributed]
    customers: int
    # How many texts the preview read, and whether they are only a sample of the texts of the last 60 days.
    texts: int
    is_sample: bool


def check_windows(windows: Windows) -> None:
    """Raises `ValueError` if a window is too short or too long."""
    for field, (limit, sentence) in _LIMITS.items():
        if not 1 <= getattr(windows, field) <= limit:
            raise ValueError(sentence.format(limit))


async def list_versions(tx: Tx, organization_id: UUID) -> list[WindowsVersion]:
    """The versions, newest first; the last version has the defaults."""
    rows = await tx.fetch(
        """
        SELECT version, click_days, delivery_hours, lift_days, created_at, created_by FROM attribution_settings
        WHERE organization_id = %s
        ORDER BY version DESC
        LIMIT %s
        """,
        (organization_id, VERSIONS_LISTED_MAX),
    )
    versions = [WindowsVersion(version, Windows(*windows), at, by) for version, *windows, at, by in rows]
    return [*versions, WindowsVersion(0, Windows())]


def windows_of_text(versions: Sequence[WindowsVersion], sent_at: datetime) -> Windows:
    """The windows of a text: the current ones or, if its credits are final, those of the time when they became final.
    `versions` has the newest first."""
    final_at = sent_at + FROZEN_AFTER
    return next(it.windows for it in versions if it.created_at is None or it.created_at < final_at)


async def find_windows(tx: Tx, organization_id: UUID) -> WindowsVersion:
    """The version that applies now."""
    return (await list_versions(tx, organization_id))[0]


async def save_windows(
    tx: Tx, organization_id: UUID, windows: Windows, *, expected: int, by: str | None
) -> WindowsVersion:
    """Store a new version if the version `expected` is still the latest, and request a recomputation of credits."""
    check_windows(windows)
    inserted = await tx.execute(
        """
        INSERT INTO attribution_settings
            (organization_id, version, click_days, delivery_hours, lift_days, created_at, created_by)
        VALUES (%(organization_id)s, %(version)s, %(click_days)s, %(delivery_hours)s, %(lift_days)s, %(now)s, %(by)s)
        ON CONFLICT (organization_id, version) DO NOTHING
        """,
        {
            "organization_id": organization_id,
            "version": expected + 1,
            **windows._asdict(),
            "now": tx.now,
            "by": by,
        },
    )
    if not inserted:
        raise WindowsChanged
    await request_recompute(tx, organization_id, by=by)
    return WindowsVersion(expected + 1, windows, tx.now, by)


async def preview_windows(tx: Tx, organization_id: UUID, windows: Windows) -> WindowsPreview:
    """Compute what would be credited with the new windows, for a sample of the texts if there are many."""
    check_windows(windows)
    present = (await find_windows(tx, organization_id)).windows
    texts, is_sample, profile_ids = await _sample_texts(tx, organization_id)
    customers = dict.fromkeys(profile_ids, tx.now)
    before, after = await load_credits_by_windows(tx, organization_id, customers, [present, windows])
    return WindowsPreview(_add_up(before), _add_up(after), len(customers), texts, is_sample)


def _add_up(credits_: Iterable[Credit]) -> dict[str, Attributed]:
    sums: defaultdict[str, Attributed] = defaultdict(Attributed)
    for credit in credits_:
        sums[credit.currency] += sums_of(credit)
    return dict(sums)


async def _sample_texts(tx: Tx, organization_id: UUID) -> tuple[int, bool, list[UUID]]:
    """How many texts of the last 60 days were read, whether others were not, and the customers of those read.

    Campaigns text their recipients in random order, so the first texts of an hour are a random sample of its texts. The
    sample of an hour is in proportion to its texts, so that a campaign of a few hours is not outweighed by journeys.
    """
    start = tx.now - FROZEN_AFTER
    texts = await tx.fetch_count(
        """
        SELECT coalesce(sum(texts), 0)::bigint FROM text_totals
        WHERE organization_id = %s AND day >= %s AND state = 'sent'
        """,
        (organization_id, start.date()),
    )
    hours = FROZEN_AFTER // timedelta(hours=1)
    ids = [first_id_at(start + timedelta(hours=hour)) for hour in range(hours + 1)]
    by_hour = {"organization_id": organization_id, "first": ids[:-1], "last": ids[1:]}
    if texts <= SAMPLE_TEXTS:
        limits = [SAMPLE_TEXTS] * hours
    else:
        # Of an hour, at most as many texts are counted, so that a large campaign is not read as a whole.
        counts = await tx.fetch_column(_COUNT_BY_HOUR, {**by_hour, "limit": SAMPLE_TEXTS})
        limits = _divide(SAMPLE_TEXTS, counts)
    sampled = await tx.fetch_column(_SAMPLE_BY_HOUR, {**by_hour, "limits": limits, "limit": SAMPLE_TEXTS})
    # The totals also count texts without a customer: responses to STOP, and texts to customers who were erased.
    is_sample = texts > SAMPLE_TEXTS or len(sampled) == SAMPLE_TEXTS
    return len(sampled), is_sample, sorted(set(sampled))


_SAMPLE_BY_HOUR: Final = """
SELECT t.profile_id
FROM unnest(%(first)s::uuid[], %(last)s::uuid[], %(limits)s::bigint[]) AS it (first, last, texts)
CROSS JOIN LATERAL (
    SELECT profile_id FROM texts
    WHERE organization_id = %(organization_id)s AND id >= it.first AND id < it.last
      AND claimed_at IS NOT NULL AND profile_id IS NOT NULL
    ORDER BY id
    LIMIT it.texts
) AS t
LIMIT %(limit)s
"""
_COUNT_BY_HOUR: Final = """
SELECT (
    SELECT count(*) FROM (
        SELECT FROM texts
        WHERE organization_id = %(organization_id)s AND id >= it.first AND id < it.last
        LIMIT %(limit)s
    ) AS t
)
FROM unnest(%(first)s::uuid[], %(last)s::uuid[]) WITH ORDINALITY AS it (first, last, number)
ORDER BY it.number
"""


def _divide(total: int, counts: Sequence[int]) -> list[int]:
    """Divide a total in proportion to the counts; the shares are whole numbers, and their sum is the total."""
    whole = max(1, sum(counts))
    shares = [total * until // whole for until in accumulate(counts, initial=0)]
    return [until - before for before, until in pairwise(shares)]
