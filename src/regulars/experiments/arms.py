"""The arms of a campaign: to which of them (a variant of the text, or the holdout) each customer belongs. No I/O."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.texts.template import TextContent

PERCENT: Final = 100


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One text, perhaps in several languages, and the percentage of the texted recipients who get it."""

    text: TextContent
    share: Annotated[int, Meta(ge=1, le=PERCENT)] = PERCENT


# The arm of recipients who are held out; the arms of variants are numbered from 1.
HELD_OUT_ARM: Final = 0
# The arm number of customers in no arm: those in the global holdout, and in totals those who may not be texted.
NO_ARM: Final = -1
# About this many recipients of a large campaign share a position, and so an entry of the index of waiting recipients:
# 11 bytes for each instead of 80.
POSITION_RECIPIENTS: Final = 32
# Below this many positions, each recipient has a position of their own.
_POSITIONS_MIN: Final = 32
_POSITION_BITS: Final = 31
# Customers are hashed into this many buckets, of which the first are held out.
_BUCKETS: Final = 10_000


class Placement(NamedTuple):
    """The arm of a recipient, and the position in the random order of sending."""

    arm: int
    position: int


def assign_arm(campaign_id: UUID, profile_id: bytes, *, holdout_percent: int, variants: Sequence[Variant]) -> Placement:
    """Assign a customer to an arm and a position, always the same for a campaign. Both come from different bits of a
    hash, so they are independent of each other."""
    digest = hashlib.sha256(campaign_id.bytes + profile_id).digest()
    # 31 bits, because the column is a signed integer.
    position = int.from_bytes(digest[8:12], "big") >> (32 - _POSITION_BITS)
    if int.from_bytes(digest[:8], "big") % _BUCKETS < holdout_percent * _BUCKETS // 100:
        return Placement(HELD_OUT_ARM, position)
    # The shares of the variants are percentages, which add up to 100.
    percentile, shares_so_far = int.from_bytes(digest[16:24], "big") % 100, 0
    for arm, variant in enumerate(variants, start=1):
        shares_so_far += variant.share
        if percentile < shares_so_far:
            return Placement(arm, position)
    return Placement(len(variants), position)


def share_position(position: int, *, recipients: int) -> int:
    """Round a position, so that few recipients share it. These are sent in the order in which they are stored; which
    recipients share a position remains random."""
    positions = recipients // POSITION_RECIPIENTS
    return position if positions < _POSITIONS_MIN else position * positions >> _POSITION_BITS


def split_holdout(may_be_texted: int, holdout_percent: int) -> tuple[int, int]:
    """The expected numbers of recipients of a text and of customers who are held out."""
    held_out = round(may_be_texted * holdout_percent / PERCENT)
    return may_be_texted - held_out, held_out
