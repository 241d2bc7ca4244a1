"""What segments hold about people: columns beside the rows, and conditions that may name one person."""

from typing import Final

from regulars.segments.saved.erased_values import erase_values
from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(
    columns=("segment_versions.definition", "segment_blobs.content", "segment_customers.profile_id"),
    not_personal={
        "segments.name": "what staff call a segment",
        "segment_versions.created_by": "about the retailer's staff, who are no customers",
        "segment_blobs.part": "the name of a column",
        "segment_keys": "names of fields",
        "segment_uses": "ids of what asks for a segment",
        "segment_columns": "how far columns were made",
        "segment_runs": "sizes of columns",
        "segment_sizes": "counts",
        "segment_fed": "ids of sales",
    },
    # The columns follow: the feed handles the erasure, and a purge removes the values within half a day.
    erase=erase_values,
)
