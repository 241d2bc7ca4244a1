"""Declares the personal data of holdouts. `inbox/personal.py` erases and exports that of the global holdout, and
`journeys/personal.py` erases that of splits."""

from typing import Final

from regulars.work.personal import PersonalData

_STEP: Final = "the id of a step"

PERSONAL_DATA: Final = PersonalData(
    columns=(
        "holdout_customers.profile_id",
        "journey_holdouts.profile_id",
    ),
    not_personal={
        "journey_holdouts.step": _STEP,
        "holdouts": "settings of the retailer",
    },
)
