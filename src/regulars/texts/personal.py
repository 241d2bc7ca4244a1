"""Declares the personal data of texts. `inbox/personal.py` erases and exports it, with the replies."""

from typing import Final

from regulars.work.personal import PersonalData

_STAFF: Final = "about the retailer's staff, who are not customers"

PERSONAL_DATA: Final = PersonalData(
    columns=(
        "texts.profile_id",
        "texts.number_hash",
        "texts.phone_number",
        "texts.body",
        "texts.reason",
        "texts.provider_id",
        "simulated_texts.phone_number",
        "simulated_texts.body",
    ),
    not_personal={
        "texts.step": "the id of a step, of the request for an answer, or of the profile or reply that the text is for",
        "texts.provider": "the name of a provider",
        "sms_settings": "settings and credentials of the retailer",
        "text_totals": "counts",
        "stopped_origins": "ids of journeys and campaigns, and why they stopped",
        "test_numbers": _STAFF,
        "sender_rates": "numbers and names of the retailer",
    },
)
