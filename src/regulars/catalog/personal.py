"""Declare the personal data in the catalogs: samples of attribute and product values.

An erasure deletes all samples of previews, because they are stored without the customer they came from. The values that
are suggested stay, without the erased customers; one that fewer than five customers have left is deleted.
"""

from typing import Final

from regulars.catalog.counts.counting import erase_values
from regulars.work.personal import PersonalData

_KEY_REASON: Final = "the name of a field, which many customers or products share"
_ALLOWED_VALUES_REASON: Final = "a list of allowed values that staff declared for all customers or products"


PERSONAL_DATA: Final = PersonalData(
    columns=("catalog_tallies.samples", "catalog_tallies.common"),
    not_personal={
        "catalog_counts.key": _KEY_REASON,
        "catalog_counts.allowed_values": _ALLOWED_VALUES_REASON,
        "catalog_tallies.key": _KEY_REASON,
        "catalog_tallies.buyers": "ends of random ids, which find no customer; an erasure removes its own",
        "catalog_products": "products, without the customers who bought them",
        "profile_attributes.key": _KEY_REASON,
        "profile_attributes.allowed_values": _ALLOWED_VALUES_REASON,
        "product_properties.key": _KEY_REASON,
        "product_properties.allowed_values": _ALLOWED_VALUES_REASON,
    },
    erase=erase_values,
)
