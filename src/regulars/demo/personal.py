"""The demo stores no personal data: its customers are invented."""

from typing import Final

from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(not_personal={"demo_runs": "progress of loading a demo"})
