"""List the effects of a customer's reply for the simulator: consent ledger entries, ended journeys, the confirmation
text, webhooks."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from regulars.consent.history import list_last_entries
from regulars.consent.model import LedgerEntry
from regulars.consent.subscription import Subscription
from regulars.explore.ledger_labels import title_of
from regulars.journeys.model import RunRow
from regulars.journeys.runs.lists import list_runs_of_customer, name_journeys
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY, REPLY, RUN, SUBSCRIPTION, TEXT, WEBHOOK_DELIVERY
from regulars.texts.find import list_responses
from regulars.texts.labels import label_meaning, label_reason, label_state
from regulars.texts.model import ReplyRow, TextRow
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.visit import Visit
from regulars.webhooks.find import list_posted_events
from regulars.webhooks.model import PostedEvent

ENTRIES_SEARCHED: Final = 20
EVENTS_SHOWN: Final = 5
# Only the newest runs are searched for those that the reply ended.
RUNS_SEARCHED: Final = 20
_SECOND: Final = timedelta(seconds=1)
_HASH_CHARACTERS: Final = 10


class TraceStep(NamedTuple):
    icon: str
    kind: str
    title: str
    text: str
    url: str
    when: str


async def read_steps(tx: Tx, visit: Visit, reply: ReplyRow, subscription: Subscription | None) -> list[TraceStep]:
    """The effects of the reply, in order. The worker causes some of them, so a later call may return more."""
    steps = [_received_step(visit, reply)]
    if subscription is not None:
        entries = await list_last_entries(tx, visit.organization_id, subscription.id, limit=ENTRIES_SEARCHED)
        message_id = f"reply:{reply.id}"
        steps += [_entry_step(visit, subscription, each, reply) for each in entries if _message_of(each) == message_id]
    if reply.profile_id is not None and reply.decided == "withdrew":
        runs = await list_runs_of_customer(tx, visit.organization_id, reply.profile_id, limit=RUNS_SEARCHED)
        ended = [run for run in runs if run.ended_at is not None and run.ended_at >= reply.received_at]
        names = await name_journeys(tx, visit.organization_id, {run.journey_id for run in ended})
        steps += [_run_step(visit, run, names.get(run.journey_id, "a journey"), reply) for run in reversed(ended)]
    steps += [_response_step(visit, text, reply) for text in await list_responses(tx, visit.organization_id, reply.id)]
    if reply.decided is None:
        steps.append(_inbox_step(visit, reply))
    if subscription is not None:
        posted = await list_posted_events(
            tx, visit.organization_id, subscription.id, since=reply.received_at, limit=EVENTS_SHOWN
        )
        steps += [_event_step(visit, event, reply) for event in posted]
    return steps


def _received_step(visit: Visit, reply: ReplyRow) -> TraceStep:
    body = mask.text(visit, reply.body) or "nothing"
    return TraceStep(
        "message",
        "",
        f"Received “{body}”",
        label_meaning(reply.meaning).sentence,
        visit.url("/messages/inbox", REPLY.encode(reply.id)),
        visit.format.clock(reply.received_at, seconds=True),
    )


def _message_of(entry: LedgerEntry) -> str | None:
    """The id of the message that caused the ledger entry."""
    if entry.payload is None:
        return None
    payload: dict[str, object] = msgspec.json.decode(entry.payload)
    return str(payload.get("message_id"))


def _entry_step(visit: Visit, subscription: Subscription, entry: LedgerEntry, reply: ReplyRow) -> TraceStep:
    kind = "yes" if entry.kind == "OPT_IN" else "no"
    return TraceStep(
        "consent",
        kind,
        f"{title_of(entry)}: entry {entry.sequence} of this number",
        f"Recorded with the hash {entry.hash.hex()[:_HASH_CHARACTERS]}.",
        visit.url("/consent/numbers", SUBSCRIPTION.encode(subscription.id)) + f"#ledger-{entry.sequence}",
        _time_after(entry.received_at, reply),
    )


def _run_step(visit: Visit, run: RunRow, name: str, reply: ReplyRow) -> TraceStep:
    url = visit.url("/journeys", JOURNEY.encode(run.journey_id), "runs", RUN.encode(run.id))
    outcome = f"{(run.outcome or 'ended').capitalize()}."
    return TraceStep(
        "automate", "", f"Left the journey {name}", outcome, url, _time_after(run.ended_at or reply.received_at, reply)
    )


def _response_step(visit: Visit, text: TextRow, reply: ReplyRow) -> TraceStep:
    kind = {"stop": "Confirmation", "help": "Answer to HELP"}.get(text.origin_kind, "Answer from your team")
    state = label_reason(text.reason) or label_state(text.state)
    sentence = "The only text that may follow an opt-out." if text.origin_kind == "stop" else state.sentence
    return TraceStep(
        "message",
        "",
        f"{kind}: {state.name.lower()}",
        sentence,
        visit.url("/messages", TEXT.encode(text.id)),
        _time_after(text.claimed_at or text.created_at, reply),
    )


def _inbox_step(visit: Visit, reply: ReplyRow) -> TraceStep:
    sentence = (
        "The number gets no texts until then." if reply.meaning == "perhaps_stop" else "Its consent does not change."
    )
    return TraceStep(
        "clock",
        "",
        "Waits in the inbox for your team",
        sentence,
        visit.url("/messages/inbox", REPLY.encode(reply.id)),
        "",
    )


def _event_step(visit: Visit, posted: PostedEvent, reply: ReplyRow) -> TraceStep:
    webhooks = visit.format.count(posted.deliveries, "webhook")
    url = ""
    if posted.delivery_id is not None and visit.may(Action.READ_WEBHOOKS):
        url = visit.url("/webhooks/deliveries", WEBHOOK_DELIVERY.encode(posted.delivery_id))
    return TraceStep(
        "plug", "", f"{webhooks}: {posted.type}", _describe_delivery(posted), url, _time_after(posted.created_at, reply)
    )


def _describe_delivery(posted: PostedEvent) -> str:
    if posted.delivered == posted.deliveries:
        return "Delivered."
    return f"{posted.delivered} of {posted.deliveries} delivered so far."


def _time_after(moment: datetime, reply: ReplyRow) -> str:
    """The time since the reply, such as "+120 ms"; empty if the moment is before it."""
    passed = moment - reply.received_at
    if passed < timedelta(0):
        return ""
    if passed < _SECOND:
        return f"+{passed // timedelta(milliseconds=1)} ms"
    return f"+{passed / _SECOND:.1f} s" if passed < 100 * _SECOND else f"+{passed // timedelta(minutes=1)} min"
