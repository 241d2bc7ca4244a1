"""Segments that ask for others, in an order in which each is looked at once."""

from collections.abc import Mapping

from regulars.segments.check import segments_of
from regulars.segments.definition import Group


def innermost_first(match: Group, segments: Mapping[str, Group | None]) -> list[str]:
    """Those that a match asks for, also by way of one another, each after those that it asks for itself.

    None is one that nobody looks into. They are found without going down with them: a chain of them may be longer than
    the interpreter goes down. In a circle, which no saved segments make, one comes before what it asks for.
    """
    order: dict[str, None] = {}
    begun: set[str] = set()
    way = sorted(segments_of(match))
    while way:
        segment_id = way[-1]
        inner = segments.get(segment_id)
        ahead = set() if inner is None or segment_id in begun else segments_of(inner) - begun
        begun.add(segment_id)
        if ahead:
            way += sorted(ahead)
        else:
            order.setdefault(way.pop())
    return [segment_id for segment_id in order if segment_id in segments]
