"""What a run saw and decided, line by line, as a person reads it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from regulars.journeys.definition import Definition
from regulars.journeys.labels import name_segments, tell_length, tell_step, tell_ways
from regulars.journeys.model import RunRow, TraceRow
from regulars.journeys.pages.flow import SKIPS
from regulars.journeys.program import program_of
from regulars.journeys.runs.decide import FAULT_LASTS_MAX
from regulars.kit.clock import parse_timestamp
from regulars.messaging.model import TextRow
from regulars.web import mask
from regulars.web.format import Format
from regulars.web.visit import Visit

WAITS = {"purchase": "Waits for a purchase", "text": "Waits for its text", "time": "Waits", "fault": "Cannot decide"}
TEXT_STATES = {
    "queued": "Waits for its moment: open hours, or the worker.",
    "sending": "Is leaving now.",
    "unknown": "Whether it left is not known, so it is never sent again.",
    "sent": "Sent.",
    "delivered": "Delivered.",
    "failed": "Failed.",
}


class Line(NamedTuple):
    icon: str
    # yes, no, now, or nothing
    kind: str
    title: str
    text: str
    at: datetime
    # The words of a text that was asked for here.
    body: str | None = None


class Around(NamedTuple):
    """What a trace names: the texts of the run, and the segments that were looked at, by their ids."""

    texts: Sequence[TextRow]
    segments: Mapping[str, str]


def segments_seen(rows: Sequence[TraceRow]) -> set[str]:
    """The ids of the segments that were looked at."""
    details = [row.detail for row in rows if isinstance(row.detail, dict)]
    return {segment_id for detail in details for segment_id in _segments_of(detail)}


def tell_trace(
    visit: Visit, run: RunRow, rows: Sequence[TraceRow], definition: Definition, around: Around
) -> list[Line]:
    return [_tell(visit, row, definition, around) for row in rows] + _tell_now(visit, run)


def _tell(visit: Visit, row: TraceRow, definition: Definition, around: Around) -> Line:
    formats = visit.format
    node = program_of(definition).nodes.get(row.step or "")
    name = tell_step(node.step).name if node is not None else row.step or ""
    detail = row.detail if isinstance(row.detail, dict) else {}
    match row.event:
        case "entered":
            seen = _tell_seen(detail, around.segments)
            return Line("ticket", "yes", "Entered", f"By version {detail.get('version', '')}. {seen}".strip(), row.at)
        case "waits":
            reason = "for a purchase, " if detail.get("for") else ""
            return Line("clock", "", f"Waits: {name}", f"{reason}until {_moment(detail.get('until'), formats)}", row.at)
        case "went on":
            return Line("check", "yes", f"Waited: {name}", "", row.at)
        case "texts":
            text = next((text for text in around.texts if text.step == (row.step or "")), None)
            return Line(
                "message", _kind_of_text(text), "Asks for a text", _tell_text(visit, text), row.at, text and text.body
            )
        case "then" | "else" as way:
            ways = tell_ways(node.step) if node is not None else ("Yes", "No")
            is_then = way == "then"
            title = f"{name_segments(name, around.segments)} {ways[0] if is_then else ways[1]}"
            return Line("branch", "yes" if is_then else "no", title, _tell_seen(detail, around.segments), row.at)
        case "cannot judge":
            fault = str(detail.get("fault", ""))
            return Line("alert", "no", f"Cannot decide: {name_segments(name, around.segments)}", fault, row.at)
        case "set" | "not set":
            refused = "" if row.event == "set" else "Refused: the customer has too many attributes."
            return Line("tag", "no" if refused else "", f"Sets {name}", refused, row.at)
        case "failed":
            return Line("alert", "no", f"Failed at: {name}", f"Attempt {detail.get('attempts', '')}.", row.at)
        case "resumed":
            return Line("refresh", "", "Tries again", "A person resumed it.", row.at)
        case _:
            return Line("out", "", "Left the journey", _sentence(detail.get("outcome")), row.at)


def tell_reason(visit: Visit, run: RunRow) -> str:
    """Why a run waits for a person. Releases before this one stored the name of a Python class in front."""
    kind, is_old, _ = (run.reason or "").partition("; the log of the worker says more")
    return "A step failed; the log of the worker says why." if is_old else mask.text(visit, kind) or ""


def _tell_now(visit: Visit, run: RunRow) -> list[Line]:
    formats = visit.format
    if run.state == "ended":
        return []
    if run.state == "parked":
        return [
            Line(
                "alert",
                "no",
                "Waits for a person",
                tell_reason(visit, run),
                run.waiting_since or run.entered_at,
            )
        ]
    if run.waits_for == "fault" and run.waiting_since is not None:
        ends_at = formats.full_moment(run.waiting_since + FAULT_LASTS_MAX)
        text = f"It goes on within the hour once the fault is repaired, and leaves on {ends_at} if it is not."
        return [Line("alert", "now", "Waits at a branch that cannot be judged", text, formats.now)]
    until = "" if run.due_at is None else f"Until {formats.full_moment(run.due_at)} at the latest."
    return [Line("clock", "now", WAITS.get(run.waits_for or "", "Goes on at its next turn"), until, formats.now)]


def _kind_of_text(text: TextRow | None) -> str:
    if text is None:
        return ""
    return {"sent": "yes", "delivered": "yes", "skipped": "no", "failed": "no"}.get(text.state, "")


def _tell_text(visit: Visit, text: TextRow | None) -> str:
    if text is None:
        return "The text itself is no longer kept."
    if text.state == "skipped":
        reason, _, field = (text.reason or "").partition(":")
        told = SKIPS.get(reason) or mask.text(visit, reason)
        return f"Skipped: {told}{f' ({mask.text(visit, field.strip())})' if field else ''}."
    said = TEXT_STATES.get(text.state, text.state)
    # A provider's own words may hold the number.
    return f"{said} {mask.text(visit, text.reason)}." if text.state == "failed" and text.reason else said


def _tell_seen(detail: Mapping[str, Any], segments: Mapping[str, str]) -> str:
    """What a fork looked at, or whoever let somebody in."""
    told = []
    if "subscribed" in detail:
        told.append("Could be texted" if detail["subscribed"] else "Could not be texted")
    purchases = detail.get("purchases")
    if isinstance(purchases, dict):
        told += [f"{times} other purchases in {tell_length(days=int(days))}" for days, times in purchases.items()]
    told += [_tell_segment(segments.get(one, one), seen) for one, seen in _segments_of(detail).items()]
    if "share" in detail:
        told.append(f"Drew {detail['share']} of 100")
    if "bought" in detail:
        told.append("Bought in time" if detail["bought"] else "Did not buy in time")
    return "; ".join(told) + "." if told else ""


def _segments_of(detail: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    segments = detail.get("segments")
    if not isinstance(segments, dict):
        return {}
    return {segment_id: seen for segment_id, seen in segments.items() if isinstance(seen, dict)}


def _tell_segment(name: str, seen: Mapping[str, Any]) -> str:
    where = "In" if seen.get("in") else "Not in"
    faulty = ", which matched nobody" if seen.get("has_fault") else ""
    return f"{where} the segment {name}, version {seen.get('version')}{faulty}"


def _moment(text: object, formats: Format) -> str:
    try:
        return formats.full_moment(parse_timestamp(str(text)))
    except ValueError:
        return str(text)


def _sentence(outcome: object) -> str:
    text = str(outcome or "").strip()
    return f"{text[:1].upper()}{text[1:]}." if text else ""
