"""What conditions name: keys of the catalogs, stores, segments, and the segments that those ask for in turn."""

from collections.abc import Mapping

from regulars.conditions.tree import Condition, Consent, InSegment, OfAttribute, OfProduct, OfSales, OfStore, walk


def attributes_of(condition: Condition) -> set[str]:
    return {part.key for _, part in walk(condition) if isinstance(part, OfAttribute)}


def properties_of(condition: Condition) -> set[str]:
    parts = (part for _, part in walk(condition) if isinstance(part, OfSales | OfProduct))
    return {part.property.key for part in parts if part.property is not None}


def stores_of(condition: Condition) -> set[str]:
    parts = [part for _, part in walk(condition)]
    named = [part.stores for part in parts if isinstance(part, OfSales | Consent)]
    return {store for stores in [*named, *(it.any_of for it in parts if isinstance(it, OfStore))] for store in stores}


def segments_of(condition: Condition) -> set[str]:
    return {part.id for _, part in walk(condition) if isinstance(part, InSegment)}


def innermost_first(match: Condition, segments: Mapping[str, Condition | None]) -> list[str]:
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
