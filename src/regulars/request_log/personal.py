"""What the request log holds about people."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.request_log import queries
from regulars.work.personal import ErasedPeople, PersonalData


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """The entries whose path names them go."""
    await queries.delete_entries_of_profiles(tx, organization_id, people.profile_ids)


PERSONAL_DATA: Final = PersonalData(
    columns=("request_log.profile_id", "request_log.problem"),
    harmless={
        "request_log.target": "a path in which customers stand by canonical id only",
        "request_log.method": "a method of HTTP",
        "request_log.code": "the code of a refusal",
        "request_log.request_id": "made by us, or by the caller to trace a request",
        "request_counts": "counts",
    },
    erase=_erase,
)
