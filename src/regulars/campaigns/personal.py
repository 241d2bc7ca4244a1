"""Exports and erases what campaigns store about a person: the campaigns that selected them, and the outcomes."""

from collections.abc import AsyncIterator
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from regulars.campaigns.recipients import LAST_ID, RecipientOfPerson, list_recipients_of_person
from regulars.campaigns.retention import erase_from_audiences, erase_recipients
from regulars.inbox.retention import erase_from_facts
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.ids import CAMPAIGN
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, export_rows

_STAFF: Final = "about the retailer's staff, who are not customers"


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    # Listeners lock recorded events about texts before recipients. The same order here avoids deadlocks.
    await erase_from_facts(tx, organization_id, profile_ids=people.profile_ids, number_hashes=people.number_hashes)
    await erase_from_audiences(tx, organization_id, people.profile_ids)
    await erase_recipients(tx, organization_id, people.profile_ids)


def export_recipients(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    # The newest campaign comes first, so the list starts before the greatest id.
    async def list_rows(tx: Tx, before: UUID, limit: int) -> list[RecipientOfPerson]:
        return await list_recipients_of_person(
            tx, person.organization_id, person.profile_id, before=before, limit=limit
        )

    return export_rows(database, list_rows, _as_data, position=attrgetter("campaign_id"), start=LAST_ID)


def _as_data(row: RecipientOfPerson) -> dict[str, Any]:
    return {
        "campaign": {"id": CAMPAIGN.encode(row.campaign_id), "name": row.name},
        "arm": row.arm,
        "outcome": row.outcome,
        "reason": row.reason or None,
        "chosen_at": format_timestamp(row.created_at),
    }


PERSONAL_DATA: Final = PersonalData(
    columns=("campaign_audiences.profile_ids", "campaign_recipients.profile_id"),
    not_personal={
        "campaigns.name": "what staff call a campaign",
        "campaigns.definition": "ids of segments, texts with variables, and times",
        "campaigns.reason": "why a campaign is paused",
        "campaigns.confirmed_cost": "amounts by currency",
        "campaigns.question": "counts, and amounts by currency",
        "campaigns.confirmed_by": _STAFF,
        "campaigns.approved_by": _STAFF,
        "campaigns.approved_cost": "amounts by currency",
        "campaigns.approved_segments": "ids and versions of segments",
        "campaigns.changed_by": _STAFF,
        "campaigns.created_by": _STAFF,
        "campaigns.updated_by": _STAFF,
        "campaign_recipients.outcome": "one of the outcomes of a text",
        "campaign_recipients.reason": "one of the reasons of a skipped text",
        "campaign_recipients.country": "the country of a number",
        "campaign_totals": "counts",
        "campaign_costs": "counts",
        "campaign_settings": "settings of the retailer",
    },
    erase=_erase,
    exports={"campaigns": export_recipients},
)
