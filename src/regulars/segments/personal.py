"""Declares what segments store about people: conditions that may contain a value of one person."""

from functools import partial
from typing import Final

from regulars.conditions.erased_values import DefinitionTable, erase_values
from regulars.work.personal import PersonalData

_VERSIONS: Final = DefinitionTable(
    """
    SELECT definition::text, segment_id, version FROM segment_versions
    WHERE organization_id = %(organization_id)s AND {contains_value}
    ORDER BY segment_id, version
    """,
    """
    UPDATE segment_versions SET definition = %s::json
    WHERE organization_id = %s AND segment_id = %s AND version = %s
    """,
)

PERSONAL_DATA: Final = PersonalData(
    columns=("segment_versions.definition",),
    not_personal={
        "segments.name": "what staff call a segment",
        "segment_versions.created_by": "about the retailer's staff, who are not customers",
        "segment_keys": "names of attributes and properties",
        "segment_uses": "ids of the journeys, campaigns and segments that use a segment",
        "segment_sizes": "counts",
    },
    erase=partial(erase_values, tables=[_VERSIONS]),
)
