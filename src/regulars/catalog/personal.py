"""Declare the personal data in the catalogs: samples of attribute and product values.

An erasure deletes all samples of the organization, because they are stored without the customer they came from; the
next count collects new ones.
"""

from typing import Final
from uuid import UUID

from regulars.catalog.counts.counting import erase_values
from regulars.kit.db import Tx
from regulars.work.personal import ErasedPeople, PersonalData

_KEY_REASON: Final = "the name of a field, which many customers or products share"
_ALLOWED_VALUES_REASON: Final = "a list of allowed values that staff declared for all customers or products"


async def _erase(tx: Tx, organization_id: UUID, _people: ErasedPeople) -> None:
    await erase_values(tx, organization_id)


PERSONAL_DATA: Final = PersonalData(
    columns=("catalog_tallies.samples", "catalog_tallies.common"),
    not_personal={
        "catalog_counts.key": _KEY_REASON,
        "catalog_counts.allowed_values": _ALLOWED_VALUES_REASON,
        "catalog_tallies.key": _KEY_REASON,
        "profile_attributes.key": _KEY_REASON,
        "profile_attributes.allowed_values": _ALLOWED_VALUES_REASON,
        "product_properties.key": _KEY_REASON,
        "product_properties.allowed_values": _ALLOWED_VALUES_REASON,
    },
    erase=_erase,
)
