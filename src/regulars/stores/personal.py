"""What stores hold about customers: nothing."""

from typing import Final

from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(harmless={"stores": "about the retailer's shops"})
