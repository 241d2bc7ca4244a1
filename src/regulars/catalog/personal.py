"""Declare the personal data in the catalogs: samples of attribute and product values.

An erasure deletes all samples of the organization, because they are stored without the customer they came from; the
next count collects new ones.
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
