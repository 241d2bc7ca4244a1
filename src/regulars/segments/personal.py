"""Declares what segments store about people: the columnar copies of customers, and conditions that may contain a value
of one person."""

from typing import Final

from regulars.segments.saved.erased_values import erase_values
from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(
    columns=("segment_versions.definition", "segment_blobs.content", "segment_customers.profile_id"),
    not_personal={
        "segments.name": "what staff call a segment",
        "segment_versions.created_by": "about the retailer's staff, who are not customers",
        "segment_blobs.part": "the name of a column of the columnar copy",
        "segment_keys": "names of attributes and properties",
        "segment_uses": "ids of the journeys, campaigns and segments that use a segment",
        "segment_columns": "progress of the build of the columnar copy",
        "segment_runs": "sizes of the stored batches of the columnar copy",
        "segment_sizes": "counts",
        "segment_fed": "ids of sales",
    },
    # After the erasure, the worker marks the customer as erased in the columnar copy; compaction deletes the stored
    # values within half a day.
    erase=erase_values,
)
