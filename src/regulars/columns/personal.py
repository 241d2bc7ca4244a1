"""Declares what the columns store about people: the columnar copies of customers."""

from typing import Final

from regulars.work.personal import PersonalData

# After the erasure, the worker marks the customer as erased in the columnar copy; compaction deletes the stored
# values within half a day.
PERSONAL_DATA: Final = PersonalData(
    columns=("segment_blobs.content", "segment_customers.profile_id"),
    not_personal={
        "segment_blobs.part": "the name of a column of the columnar copy",
        "segment_columns": "progress of the build of the columnar copy",
        "segment_runs": "sizes of the stored batches of the columnar copy",
        "segment_fed": "ids of sales",
    },
)
