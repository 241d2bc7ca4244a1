"""Counts the audience of a campaign, and copies the ids of its customers, by consent state, from one snapshot."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from regulars.columns.engine.cache import CachedColumns
from regulars.columns.engine.calendar import Zone
from regulars.columns.engine.column_answers import CONSENT_CODES
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.evaluation import Evaluation
from regulars.columns.model import MAY_BE_TEXTED
from regulars.columns.protocol import AnalysisRequest, AudienceCounts, AudiencePiece
from regulars.conditions.tree import ConsentState

PIECE_PROFILES: Final = 1 << 15
SAMPLE_CUSTOMERS_MAX: Final = 10_000


class AudienceCopy(NamedTuple):
    """The counts and ids of an audience. The ids are a copy, which later changes of the columns do not affect."""

    counts: AudienceCounts
    # For each consent state the ids, as two 64-bit integers each.
    ids: Sequence[tuple[ConsentState, Array]]

    def pieces(self) -> Iterator[AudiencePiece]:
        """Divide the ids into pieces; the first has the counts, so there is at least one."""
        slices = [
            (state, ids[first : first + PIECE_PROFILES])
            for state, ids in self.ids
            for first in range(0, max(len(ids), 1), PIECE_PROFILES)
        ]
        for index, (state, ids) in enumerate(slices):
            yield AudiencePiece(
                state=state,
                profile_ids=ids.tobytes(),
                counts=None if index else self.counts,
                is_last=index == len(slices) - 1,
            )


def choose_sample(members: Array, request: AnalysisRequest) -> list[int]:
    """Choose random customers of the mask `members`, at most `request.limit`; return their customer numbers."""
    numbers = np.flatnonzero(members)
    rng = random.Random(request.seed)  # noqa: S311  # a sample is not a secret
    selection = rng.sample(range(numbers.size), min(request.limit, SAMPLE_CUSTOMERS_MAX, numbers.size))
    return [int(numbers[index]) for index in selection]


def copy_audience(cached: CachedColumns, request: AnalysisRequest, zone: Zone, as_of: datetime) -> AudienceCopy:
    """Count the audience; copy its ids, unless the request (`want`) is only for the counts."""
    evaluation = Evaluation(cached, request.query, zone)
    members = evaluation.members()
    consent_states = evaluation.consent_states()
    may_be_texted = members & (consent_states == MAY_BE_TEXTED)
    counts = AudienceCounts(
        total=int(np.count_nonzero(members)),
        split=evaluation.count_by_consent(members),
        countries=tuple(evaluation.count_countries(may_be_texted)),
        spend=tuple(evaluation.weekly_spends(may_be_texted)) if request.with_spend else (),
        as_of=as_of,
        sample=tuple(map(cached.profile_of, choose_sample(may_be_texted, request))) if request.limit else (),
    )
    if request.want == "audience":
        return AudienceCopy(counts, ())
    return AudienceCopy(
        counts,
        [
            (state, _sort(cached.profile_ids_of(members & (consent_states == code))))
            for state, code in CONSENT_CODES.items()
        ],
    )


def _sort(ids: Array) -> Array:
    """Sort ids by their first 8 bytes, which begin with the time: fast, since customers are nearly in this order.

    Recipients are stored in this order, so that their primary key is written page after page.
    """
    return ids[np.argsort(ids[:, 0].astype(np.uint64), kind="stable")]
