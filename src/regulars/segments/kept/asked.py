"""A resolved definition as the analysis process is asked about it."""

from regulars.catalog.model import AttributeType
from regulars.segments.analysis.model import Asked
from regulars.segments.check import Types
from regulars.segments.kept.resolve import Resolved


def asked_of(resolved: Resolved, *, is_faulty: bool | None = None) -> Asked:
    return Asked(
        match=resolved.match,
        attributes=_types(resolved.attributes),
        properties=_types(resolved.properties),
        stores=dict(resolved.stores),
        segments={
            segment_id: None if other.faults else other.definition.match
            for segment_id, other in resolved.others.items()
        },
        zone=resolved.zone.key,
        today=resolved.today,
        is_faulty=bool(resolved.faults) if is_faulty is None else is_faulty,
    )


def _types(types: Types) -> dict[str, tuple[AttributeType, tuple[str, ...]]]:
    return {key: (declared, tuple(values)) for key, (declared, values) in types.items()}
