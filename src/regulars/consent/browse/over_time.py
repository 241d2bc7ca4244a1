"""The consents of customers over time: whether a number could be texted at a moment, as far as was recorded then."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.consent.browse import queries
from regulars.consent.browse.queries import LinkedEntry
from regulars.consent.model import Kind
from regulars.kit.db import Tx

NUMBERS_MAX: Final = 20
ENTRIES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class NumberHistory:
    number_hash: bytes
    phone_number: str | None
    entries: list[LinkedEntry]

    def consented_at(self, moment: datetime) -> datetime | None:
        """When the consent was given that stood at a moment, among what had arrived by then; None: none stood."""
        arrived = (it for it in self.entries if it.effective_at <= moment and it.received_at <= moment)
        last = max(arrived, key=lambda it: (it.effective_at, it.kind != Kind.OPT_IN, it.sequence), default=None)
        return last.effective_at if last is not None and last.kind == Kind.OPT_IN else None


async def load_histories(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]
) -> dict[UUID, list[NumberHistory]]:
    """The numbers that are linked to customers now, each with its newest entries; who has none is absent."""
    entries = await queries.list_entries_of_customers(
        tx, organization_id, sorted(profile_ids), numbers_max=NUMBERS_MAX, entries_max=ENTRIES_MAX
    )
    numbers: dict[UUID, NumberHistory] = {}
    found: dict[UUID, list[NumberHistory]] = {}
    for entry in entries:
        if entry.subscription_id not in numbers:
            history = numbers[entry.subscription_id] = NumberHistory(entry.number_hash, entry.phone_number, [])
            found.setdefault(entry.profile_id, []).append(history)
        numbers[entry.subscription_id].entries.append(entry)
    return found
