"""Declares what segments store about people: conditions that may contain a value of one person."""

from typing import Final

from regulars.segments.saved.erased_values import erase_values
from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(
    columns=("segment_versions.definition",),
    not_personal={
        "segments.name": "what staff call a segment",
        "segment_versions.created_by": "about the retailer's staff, who are not customers",
        "segment_keys": "names of attributes and properties",
        "segment_uses": "ids of the journeys, campaigns and segments that use a segment",
        "segment_sizes": "counts",
    },
    erase=erase_values,
)
