"""A resolved definition as the analysis process is asked about it."""

from regulars.catalog.model import AttributeType
from regulars.conditions.check import Types
from regulars.segments.analysis.model import Asked
from regulars.segments.kept.resolve import Resolved


def asked_of(resolved: Resolved, *, is_faulty: bool | None = None) -> Asked:
    return Asked(
        match=resolved.match,
        attributes=_types(resolved.known.attributes),
        properties=_types(resolved.known.properties),
        stores=dict(resolved.known.stores),
        segments={
            segment_id: None if segment.faults else segment.match
            for segment_id, segment in resolved.known.segments.items()
        },
        zone=resolved.known.zone.key,
        today=resolved.today,
        is_faulty=bool(resolved.faults) if is_faulty is None else is_faulty,
    )


def _types(types: Types) -> dict[str, tuple[AttributeType, tuple[str, ...]]]:
    return {key: (declared, tuple(values)) for key, (declared, values) in types.items()}
