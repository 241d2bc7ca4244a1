"""What the demo holds about people: nothing, and its customers are made up."""

from typing import Final

from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(harmless={"demo_runs": "how far a demo has come"})
