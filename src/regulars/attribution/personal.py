"""Exports and erases what attribution stores about a person: which of their purchases is credited to which text.

An erasure computes the person's credits a last time, then removes the person and the text from them, so that sums of
credits stay the same.
"""

from collections.abc import AsyncIterator
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from regulars.attribution.compute import compute_customers
from regulars.attribution.due_customers import delete_customers, make_due
from regulars.attribution.model import Credit
from regulars.attribution.queries import detach_credits, list_credits_of_person
from regulars.attribution.windows import find_windows
from regulars.inbox.retention import erase_from_facts
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.ids import SALES_EVENT, TEXT
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, export_rows


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    # Pending facts (events recorded for listeners) are deleted first, because listeners lock them before the customers.
    await erase_from_facts(tx, organization_id, profile_ids=people.profile_ids, number_hashes=people.number_hashes)
    # Locks the customers' rows, so that no worker computes their credits meanwhile.
    await make_due(tx, organization_id, people.profile_ids)
    windows = (await find_windows(tx, organization_id)).windows
    await compute_customers(tx, organization_id, dict.fromkeys(people.profile_ids, tx.now), windows=windows)
    await detach_credits(tx, organization_id, people.profile_ids)
    await delete_customers(tx, organization_id, people.profile_ids)


def export_credits(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    async def list_rows(tx: Tx, after: UUID, limit: int) -> list[Credit]:
        return await list_credits_of_person(tx, person.organization_id, person.profile_id, after=after, limit=limit)

    return export_rows(database, list_rows, _as_data, position=attrgetter("sale_id"))


def _as_data(credit: Credit) -> dict[str, Any]:
    return {
        "sales_event": SALES_EVENT.encode(credit.sale_id),
        "text": None if credit.text_id is None else TEXT.encode(credit.text_id),
        "touch": credit.touch,
        "touched_at": format_timestamp(credit.touched_at),
    }


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "attributed_sales.profile_id",
        "attribution_customers.profile_id",
    ),
    not_personal={
        "attributed_sales.step": "the id of a step of a journey",
        "attributed_sales.currency": "a currency",
        "attribution_totals": "sums",
        "attribution_months": "sums",
        "lifts": "sums of groups of customers",
        "sent_texts": "sums",
        "sent_text_months": "sums",
        "attribution_recomputes": "how far a computation is, and who of the staff requested it",
        "attribution_settings": "settings of the retailer, and who of the staff changed them",
    },
    erase=_erase,
    exports={"attribution": export_credits},
)
