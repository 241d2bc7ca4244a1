"""Personal data in the catalogs of attributes and product properties: sampled and frequent values.

An erasure deletes these values for the whole organization: they are not stored with the customer they came from, and
the next count collects samples again.
"""

from typing import Final
from uuid import UUID

from regulars.catalog.counts.counting import erase_values
from regulars.kit.db import Tx
from regulars.work.personal import ErasedPeople, PersonalData

_DECLARED: Final = "the name of a field, which many customers or products share"
_LISTED: Final = "a list of allowed values that staff declared for all customers or products"


async def _erase(tx: Tx, organization_id: UUID, _people: ErasedPeople) -> None:
    await erase_values(tx, organization_id)


PERSONAL_DATA: Final = PersonalData(
    columns=("catalog_tallies.samples", "catalog_tallies.common"),
    not_personal={
        "catalog_counts.key": _DECLARED,
        "catalog_counts.allowed_values": _LISTED,
        "catalog_tallies.key": _DECLARED,
        "profile_attributes.key": _DECLARED,
        "profile_attributes.allowed_values": _LISTED,
        "product_properties.key": _DECLARED,
        "product_properties.allowed_values": _LISTED,
    },
    erase=_erase,
)
