"""Describes the trace of a journey run, the list of what it read and decided, in sentences for the page."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from regulars.journeys.definition import Definition
from regulars.journeys.labels import describe_duration, describe_paths, describe_step, name_references
from regulars.journeys.model import RunRow, TraceRow
from regulars.journeys.program import graph_of
from regulars.journeys.runs.decide import FAULT_LASTS_MAX
from regulars.kit.clock import parse_timestamp
from regulars.texts.labels import name_reason, read_reason
from regulars.texts.model import TextRow
from regulars.web import mask
from regulars.web.format import Format
from regulars.web.visit import Visit

WAITS = {
    "purchase": "Waits for a purchase",
    "text": "Waits for the result of the text",
    "time": "Waits",
    "fault": "Waits, because the conditions cannot be checked",
}
# The outcomes of runs, as they are stored.
OUTCOMES = {
    "completed": "Went through all steps",
    "exited": "Reached an exit",
    "left by a withdrawal": "Opted out",
    "left by a purchase": "Made a purchase",
    "left by a return": "Made a return",
    "ended by a person": "Removed by a user after a long pause",
    "archived": "The journey was ended",
    "the branch could not be judged for 30 days": "Conditions could not be checked for 30 days",
}
TEXT_STATES = {
    "queued": "It waits to be sent.",
    "sending": "It is being sent.",
    "unknown": "It may have been sent, so it is not sent again.",
    "sent": "Sent.",
    "delivered": "Delivered.",
    "failed": "Failed.",
}


class TraceLine(NamedTuple):
    icon: str
    # The colour of the line: yes, no, now, or empty.
    kind: str
    title: str
    text: str
    at: datetime
    # The text that the step requested.
    body: str | None = None


class TraceContext(NamedTuple):
    """The texts of the run, and the names of the segments and campaigns of its definition and trace, by their ids."""

    texts: Sequence[TextRow]
    names: Mapping[str, str]


def segments_in_trace(rows: Sequence[TraceRow]) -> frozenset[str]:
    """The ids of the segments that decisions of the run depended on."""
    details = [row.detail for row in rows if isinstance(row.detail, dict)]
    return frozenset(segment_id for detail in details for segment_id in _segments_of(detail))


def describe_trace(
    visit: Visit, run: RunRow, rows: Sequence[TraceRow], definition: Definition, context: TraceContext
) -> list[TraceLine]:
    return [_describe_entry(visit, row, definition, context) for row in rows] + _describe_current_state(visit, run)


def _describe_entry(visit: Visit, row: TraceRow, definition: Definition, context: TraceContext) -> TraceLine:
    formats = visit.format
    node = graph_of(definition).nodes.get(row.step or "")
    name = describe_step(node.step).name if node is not None else row.step or ""
    detail = row.detail if isinstance(row.detail, dict) else {}
    match row.event:
        case "entered":
            inputs = _describe_inputs(detail, context.names)
            return TraceLine(
                "ticket", "yes", "Entered the journey", f"Version {detail.get('version', '')}. {inputs}".strip(), row.at
            )
        case "waits":
            reason = "for a purchase, " if detail.get("for") else ""
            return TraceLine(
                "clock", "", f"Waits: {name}", f"{reason}until {_format_time(detail.get('until'), formats)}", row.at
            )
        case "went on":
            return TraceLine("check", "yes", f"Waited: {name}", "", row.at)
        case "texts":
            text = next((text for text in context.texts if text.step == (row.step or "")), None)
            return TraceLine(
                "message",
                _kind_of_text(text),
                "Send a text",
                _describe_text(visit, text),
                row.at,
                text and text.body,
            )
        case "then" | "else" as path:
            labels = describe_paths(node.step) if node is not None else ("Yes", "No")
            is_then = path == "then"
            title = f"{name_references(name, context.names)} {labels[0] if is_then else labels[1]}"
            return TraceLine(
                "branch", "yes" if is_then else "no", title, _describe_inputs(detail, context.names), row.at
            )
        case "cannot judge":
            fault = str(detail.get("fault", ""))
            return TraceLine("alert", "no", f"Cannot be checked: {name_references(name, context.names)}", fault, row.at)
        case "set" | "not set":
            refused = "" if row.event == "set" else "Not set: the customer has too many attributes."
            return TraceLine("tag", "no" if refused else "", f"Sets {name}", refused, row.at)
        case "failed":
            return TraceLine("alert", "no", f"Failed at: {name}", f"Attempt {detail.get('attempts', '')}.", row.at)
        case "resumed":
            return TraceLine("refresh", "", "Retried", "By a user.", row.at)
        case _:
            outcome = label_outcome(detail.get("outcome"))
            return TraceLine("out", "", "Left the journey", f"{outcome}." if outcome else "", row.at)


def label_outcome(outcome: object) -> str:
    """Why the customer left; an outcome without a label, such as that of an earlier release, is shown as it is."""
    text = str(outcome or "")
    return OUTCOMES.get(text, f"{text[:1].upper()}{text[1:]}")


def describe_reason(visit: Visit, run: RunRow) -> str:
    """Why a run is parked. The reasons of earlier releases contain the name of a Python class, which is not shown."""
    reason, is_old, _ = (run.reason or "").partition("; the log of the worker says more")
    return "A step failed; the log of the worker says why." if is_old else mask.text(visit, reason) or ""


def _describe_current_state(visit: Visit, run: RunRow) -> list[TraceLine]:
    formats = visit.format
    if run.state == "ended":
        return []
    if run.state == "parked":
        return [
            TraceLine(
                "alert",
                "no",
                "Needs attention",
                describe_reason(visit, run),
                run.waiting_since or run.entered_at,
            )
        ]
    if run.waits_for == "fault" and run.waiting_since is not None:
        ends_at = formats.full_moment(run.waiting_since + FAULT_LASTS_MAX)
        text = f"The customer continues within an hour after you fix the fault, or leaves on {ends_at}."
        return [TraceLine("alert", "now", "Waits at a branch whose conditions cannot be checked", text, formats.now)]
    until = "" if run.due_at is None else f"Until {formats.full_moment(run.due_at)} at the latest."
    return [TraceLine("clock", "now", WAITS.get(run.waits_for or "", "Continues shortly"), until, formats.now)]


def _kind_of_text(text: TextRow | None) -> str:
    if text is None:
        return ""
    return {"sent": "yes", "delivered": "yes", "skipped": "no", "failed": "no"}.get(text.state, "")


def _describe_text(visit: Visit, text: TextRow | None) -> str:
    if text is None:
        return "The text was deleted."
    if text.state == "skipped":
        reason, _, field = (text.reason or "").partition(":")
        label = name_reason(reason) if read_reason(reason) else mask.text(visit, reason)
        return f"Skipped: {label}{f' ({mask.text(visit, field.strip())})' if field else ''}."
    label = TEXT_STATES.get(text.state, text.state)
    # A provider's error message may contain the number.
    return f"{label} {mask.text(visit, text.reason)}." if text.state == "failed" and text.reason else label


def _describe_inputs(detail: Mapping[str, Any], segments: Mapping[str, str]) -> str:
    """The values on which the entry filter or a step with two paths decided."""
    sentences = []
    if "subscribed" in detail:
        sentences.append("May be texted" if detail["subscribed"] else "May not be texted")
    purchases = detail.get("purchases")
    if isinstance(purchases, dict):
        sentences += [
            f"Other purchases in {describe_duration(days=int(days))}: {count}" for days, count in purchases.items()
        ]
    sentences += [_describe_segment(segments.get(it, it), inputs) for it, inputs in _segments_of(detail).items()]
    if "share" in detail:
        sentences.append(f"Random number: {detail['share']} of 100")
    if "bought" in detail:
        sentences.append("Bought in time" if detail["bought"] else "Did not buy in time")
    return "; ".join(sentences) + "." if sentences else ""


def _segments_of(detail: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    segments = detail.get("segments")
    if not isinstance(segments, dict):
        return {}
    return {segment_id: inputs for segment_id, inputs in segments.items() if isinstance(inputs, dict)}


def _describe_segment(name: str, inputs: Mapping[str, Any]) -> str:
    membership = "In" if inputs.get("in") else "Not in"
    faulty = ", which had a fault and matched no customer" if inputs.get("has_fault") else ""
    return f"{membership} the segment {name}, version {inputs.get('version')}{faulty}"


def _format_time(text: object, formats: Format) -> str:
    try:
        return formats.full_moment(parse_timestamp(str(text)))
    except ValueError:
        return str(text)
