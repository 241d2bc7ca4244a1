"""What organizations and their keys hold about customers: nothing."""

from typing import Final

from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(
    harmless={
        "organizations": "about the retailer",
        "organization_slugs": "about the retailer",
        "api_keys": "about the retailer's systems",
    }
)
