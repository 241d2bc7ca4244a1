"""A subscription at one moment, and how callers see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent.model import State
from regulars.consent.queries import HeadRow
from regulars.consent.wire import LinkedProfileOut, ProofOut, SubscriptionOut
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import PROFILE, SUBSCRIPTION
from regulars.profiles.model import ProfileRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription at one moment; inside a batch each event has the one it left behind."""

    id: UUID
    state: State
    profile: ProfileRef | None
    created_at: datetime
    updated_at: datetime


def subscription_of(head: HeadRow, state: State, external_ids: Mapping[UUID, str]) -> Subscription:
    """The subscription to show; a link to a profile that is gone shows as none."""
    external_id = external_ids.get(state.profile_id) if state.profile_id is not None else None
    profile = None
    if state.profile_id is not None and external_id is not None:
        profile = ProfileRef(state.profile_id, external_id)
    return Subscription(
        id=head.id, state=state, profile=profile, created_at=head.created_at, updated_at=head.updated_at
    )


def show_subscription(subscription: Subscription) -> SubscriptionOut:
    state, profile = subscription.state, subscription.profile
    return SubscriptionOut(
        id=SUBSCRIPTION.encode(subscription.id),
        profile=None if profile is None else LinkedProfileOut(PROFILE.encode(profile.id), profile.external_id),
        phone_number=state.phone_number,
        status=state.status.value,
        consent_source=state.source,
        consented_at=show_timestamp(state.consented_at),
        unsubscribed_at=show_timestamp(state.unsubscribed_at),
        consent_proof=None
        if state.proof is None
        else ProofOut(state.proof.terms_url, state.proof.terms_version, state.proof.source_text),
        created_at=format_timestamp(subscription.created_at),
        updated_at=format_timestamp(subscription.updated_at),
    )


def show_timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)
