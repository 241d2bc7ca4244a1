"""The rules of consent over every order in which events can arrive."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import permutations
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.consent.fold import fold

from regulars.consent.model import AppliedEvent, Event, OptIn, OptOut, Outcome, Proof, Status, SubscriptionState, apply

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NUMBER = "+33612345678"
EVENTS_MAX = 6

# Few values each, so that equal times and equal contents come up all the time.
moments = st.integers(0, 4).map(lambda minutes: START + timedelta(minutes=minutes))
profile_ids = st.sampled_from([None, UUID(int=1), UUID(int=2)])
opt_ins = st.builds(
    OptIn,
    phone_number=st.just(NUMBER),
    source=st.sampled_from(["WEBSITE", "EVENT"]),
    claimed_at=moments,
    received_at=moments,
    proof=st.sampled_from(
        [
            None,
            Proof(terms_version="1"),
            Proof(terms_version="2"),
            Proof(source_text="yes"),
            Proof("https://x", None, ""),
        ]
    ),
    profile_id=profile_ids,
    found_profile_id=profile_ids,
    keeps_profile=st.booleans(),
    store_id=profile_ids,
)
dated_opt_outs = st.builds(
    OptOut, phone_number=st.just(NUMBER), claimed_at=moments, received_at=moments, profile_id=profile_ids
)
immediate_opt_outs = st.builds(
    OptOut, phone_number=st.just(NUMBER), received_at=moments, profile_id=profile_ids, erases=st.booleans()
)
histories = st.lists(opt_ins | dated_opt_outs | immediate_opt_outs, min_size=1, max_size=8)


def head_after(events: "list[Event] | tuple[Event, ...]") -> SubscriptionState:
    state = reduce(lambda state, event: apply(state, event).state, events, None)
    assert state is not None
    return state


def walk(events: list[Event]) -> list[tuple[SubscriptionState | None, Event, AppliedEvent]]:
    """Each event with the state before it and what came of it."""
    steps, state = [], None
    for event in events:
        applied = apply(state, event)
        steps.append((state, event, applied))
        state = applied.state
    return steps


@settings(max_examples=60)
@given(st.lists(opt_ins | dated_opt_outs, min_size=1, max_size=EVENTS_MAX))
def test_status_and_time_of_withdrawal_end_the_same_for_every_arrival_order(events: list[Event]) -> None:
    ends = {(head.status, head.unsubscribed_at) for head in map(head_after, permutations(events))}
    assert len(ends) == 1


@given(st.lists(opt_ins | dated_opt_outs, min_size=1, max_size=EVENTS_MAX))
def test_the_event_that_stands_last_decides_and_an_opt_out_stands_after_an_opt_in_of_its_instant(
    events: list[Event],
) -> None:
    def effective(event: Event) -> datetime:
        assert event.claimed_at is not None
        return min(event.claimed_at, event.received_at)

    last = max(effective(event) for event in events)
    is_withdrawn = any(isinstance(event, OptOut) and effective(event) == last for event in events)
    head = head_after(events)
    assert head.status is (Status.UNSUBSCRIBED if is_withdrawn else Status.SUBSCRIBED)
    assert head.unsubscribed_at == (last if is_withdrawn else None)


@settings(max_examples=500)
@given(histories)
def test_the_constant_time_head_equals_the_full_fold(events: list[Event]) -> None:
    assert head_after(events) == fold(events)


@given(histories)
def test_a_superseded_event_changes_no_field(events: list[Event]) -> None:
    for before, _, applied in walk(events):
        if applied.outcome is Outcome.SUPERSEDED:
            assert before is not None
            assert applied.state.equals_in_api(before)


@given(histories)
def test_an_opt_out_without_a_time_is_never_superseded(events: list[Event]) -> None:
    for before, event, applied in walk(events):
        if isinstance(event, OptOut) and event.claimed_at is None:
            assert applied.outcome in (Outcome.UNSUBSCRIBED, Outcome.ALREADY_UNSUBSCRIBED)
            assert applied.state.status is Status.UNSUBSCRIBED
            assert applied.effective_at >= event.received_at
            known = [before.latest_opt_in_at, before.latest_opt_out_at] if before else []
            assert all(applied.effective_at >= moment for moment in known if moment is not None)


@given(histories)
def test_the_consent_shown_is_that_of_the_last_opt_in_that_counted(events: list[Event]) -> None:
    counted: OptIn | None = None
    for _, event, applied in walk(events):
        if isinstance(event, OptIn) and applied.outcome is not Outcome.SUPERSEDED:
            counted = event
        if isinstance(event, OptOut) and event.erases:
            counted = None
        shown = (applied.state.source, applied.state.consented_at)
        assert shown == ((counted.source, counted.claimed_at) if counted else (None, None))


@given(histories, st.integers(0, 7))
def test_presenting_an_opt_in_again_changes_nothing(events: list[Event], position: int) -> None:
    event = events[position % len(events)]
    if not isinstance(event, OptIn):
        return
    head = head_after([*events, event])
    again = apply(head, event)
    assert again.outcome in (Outcome.ALREADY_SUBSCRIBED, Outcome.SUPERSEDED)
    assert again.state == head
