"""An audience as of one snapshot: its counts, and the ids of its customers by consent state."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from regulars.conditions.tree import ConsentState
from regulars.segments.analysis.engine.cache import CachedColumns
from regulars.segments.analysis.engine.calendar import Zone
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.evaluation import CONSENT_CODES, Evaluation
from regulars.segments.analysis.protocol import AnalysisRequest, AudienceCounts, AudiencePiece
from regulars.segments.columns.model import MAY_BE_TEXTED

PIECE_PROFILES: Final = 1 << 15
SAMPLE_MAX: Final = 10_000


class AudienceCopy(NamedTuple):
    """The counts and ids of an audience. The ids are a copy, so later changes of the columns do not change them."""

    counts: AudienceCounts
    # For each consent state the ids, as two 64-bit integers each.
    ids: Sequence[tuple[ConsentState, Array]]

    def pieces(self) -> Iterator[AudiencePiece]:
        """There is always at least one piece, because the first one has the counts."""
        slices = [
            (state, ids[first : first + PIECE_PROFILES])
            for state, ids in self.ids
            for first in range(0, max(len(ids), 1), PIECE_PROFILES)
        ]
        for number, (state, ids) in enumerate(slices):
            yield AudiencePiece(
                state=state,
                profile_ids=ids.tobytes(),
                counts=None if number else self.counts,
                is_last=number == len(slices) - 1,
            )


def choose(members: Array, request: AnalysisRequest) -> list[int]:
    """The numbers of random customers of the mask `members`."""
    numbers = np.flatnonzero(members)
    rng = random.Random(request.seed)  # noqa: S311  # a sample is not a secret
    selection = rng.sample(range(numbers.size), min(request.limit, SAMPLE_MAX, numbers.size))
    return [int(numbers[index]) for index in selection]


def freeze(cached: CachedColumns, request: AnalysisRequest, zone: Zone, as_of: datetime) -> AudienceCopy:
    """Count the audience; copy its ids if the request wants them."""
    evaluation = Evaluation(cached, request.query, zone)
    members = evaluation.members()
    consent_states = evaluation.consent_states()
    may_be_texted = members & (consent_states == MAY_BE_TEXTED)
    counts = AudienceCounts(
        total=int(np.count_nonzero(members)),
        split=evaluation.split(members),
        countries=tuple(evaluation.count_countries(may_be_texted)),
        spend=tuple(evaluation.spend_per_head(may_be_texted)) if request.with_spend else (),
        as_of=as_of,
        sample=tuple(cached.profile_of(number) for number in choose(may_be_texted, request)) if request.limit else (),
    )
    if request.want == "audience":
        return AudienceCopy(counts, ())
    return AudienceCopy(
        counts,
        [(state, cached.profiles_of(members & (consent_states == code))) for state, code in CONSENT_CODES.items()],
    )
