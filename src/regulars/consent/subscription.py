"""A subscription (the consent of one phone number, with its profile and store), and its form in API responses."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent import queries
from regulars.consent.model import SubscriptionState
from regulars.consent.queries import LedgerHead
from regulars.consent.wire import LinkedProfileOut, LinkedStoreOut, ProofOut, SubscriptionOut
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, STORE, SUBSCRIPTION
from regulars.profiles.model import ProfileRef
from regulars.stores.model import StoreRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription as it was right after one of its events."""

    id: UUID
    state: SubscriptionState
    profile: ProfileRef | None
    store: StoreRef | None
    created_at: datetime
    updated_at: datetime


def make_subscription(head: LedgerHead, state: SubscriptionState, external_ids: Mapping[UUID, str]) -> Subscription:
    """Make a subscription from its row and its state, without a profile or store that no longer exists."""
    profile_id, store_id = state.profile_id, state.store_id
    return Subscription(
        id=head.id,
        state=state,
        profile=None
        if profile_id is None or profile_id not in external_ids
        else ProfileRef(profile_id, external_ids[profile_id]),
        store=None if store_id is None or store_id not in external_ids else StoreRef(store_id, external_ids[store_id]),
        created_at=head.created_at,
        updated_at=head.updated_at,
    )


async def find_external_ids(
    tx: Tx, organization_id: UUID, states: Collection[SubscriptionState], loaded: Mapping[UUID, str] | None = None
) -> Mapping[UUID, str]:
    """The external ids, by id, of the profiles and stores that the states are linked to. `loaded` has external ids that
    the caller knows; they are not read again."""
    loaded = loaded or {}
    profiles = {state.profile_id for state in states if state.profile_id is not None} - loaded.keys()
    stores = {state.store_id for state in states if state.store_id is not None} - loaded.keys()
    if not profiles and not stores:
        return loaded
    return {**loaded, **await queries.find_external_ids(tx, organization_id, profiles=profiles, stores=stores)}


def subscription_out(subscription: Subscription) -> SubscriptionOut:
    state, profile, store = subscription.state, subscription.profile, subscription.store
    return SubscriptionOut(
        id=SUBSCRIPTION.encode(subscription.id),
        profile=None if profile is None else LinkedProfileOut(PROFILE.encode(profile.id), profile.external_id),
        store=None if store is None else LinkedStoreOut(STORE.encode(store.id), store.external_id),
        phone_number=state.phone_number,
        status=state.status.value,
        consent_source=state.source,
        consented_at=format_optional_timestamp(state.consented_at),
        unsubscribed_at=format_optional_timestamp(state.unsubscribed_at),
        consent_proof=None
        if state.proof is None
        else ProofOut(state.proof.terms_url, state.proof.terms_version, state.proof.source_text),
        created_at=format_timestamp(subscription.created_at),
        updated_at=format_timestamp(subscription.updated_at),
    )


def format_optional_timestamp(time: datetime | None) -> str | None:
    return None if time is None else format_timestamp(time)
