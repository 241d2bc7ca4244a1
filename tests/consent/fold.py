"""What consent is by definition: the state after a whole history. The code decides the same in constant time."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime
from typing import NamedTuple

from regulars.consent.model import Event, OptIn, OptOut, Proof, Status, SubscriptionState


def fold(events: Iterable[Event]) -> SubscriptionState | None:
    """The state after a whole history in order of arrival, straight from the definition; quadratic, for proofs."""
    state: SubscriptionState | None = None
    order: list[_Place] = []
    for arrival, event in enumerate(events):
        is_opt_out = isinstance(event, OptOut)
        effective_at = _effective_time(event, order)
        place = _Place(effective_at, is_opt_out, arrival)
        known, order = order, sorted([*order, place])
        is_last = order[-1] == place
        is_subscribed = bool(known) and not known[-1].is_opt_out
        if state is None:
            state = SubscriptionState(phone_number=event.phone_number)
        if isinstance(event, OptIn) and is_last:
            given = event.profile_id or event.found_profile_id
            is_linked = is_subscribed or event.keeps_profile
            state = SubscriptionState(
                phone_number=event.phone_number,
                profile_id=event.profile_id or (state.profile_id if is_linked else None) or given,
                store_id=event.store_id or (state.store_id if is_subscribed else None),
                source=event.source,
                consented_at=event.claimed_at,
                proof=_latest_words([state.proof if is_subscribed else None, event.proof]),
            )
        elif isinstance(event, OptOut) and all(other <= place or other.is_opt_out for other in order):
            if event.erases:
                state = SubscriptionState(phone_number=None)
            elif not state.is_erased:
                state = replace(state, profile_id=state.profile_id or event.profile_id)
        state = replace(
            state,
            latest_opt_in_at=max((it.effective_at for it in order if not it.is_opt_out), default=None),
            latest_opt_out_at=max((it.effective_at for it in order if it.is_opt_out), default=None),
        )
        assert state.status is (Status.UNSUBSCRIBED if order[-1].is_opt_out else Status.SUBSCRIBED)
    return state


def _latest_words(proofs: list[Proof | None]) -> Proof | None:
    """Of each field the last that was said."""
    said = [asdict(proof) for proof in proofs if proof is not None]
    together = {name: text for proof in said for name, text in proof.items() if text is not None}
    return Proof(**together) if together else None


class _Place(NamedTuple):
    """Where an event stands; tuples compare in just this order."""

    effective_at: datetime
    is_opt_out: bool
    arrival: int


def _effective_time(event: Event, order: list[_Place]) -> datetime:
    if isinstance(event, OptIn):
        return min(event.claimed_at, event.received_at)
    if event.claimed_at is not None:
        return min(event.claimed_at, event.received_at)
    return max(order[-1].effective_at, event.received_at) if order else event.received_at
