"""Declares the personal data of links and clicks. `inbox/personal.py` erases and exports it, with the texts and
replies."""

from typing import Final

from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(
    columns=(
        "links.profile_id",
        "clicks.address",
        "clicks.agent",
    ),
    not_personal={
        "links.url": "an address of the retailer",
        "links.step": "the number of a variant, or the id of a step",
        "links.origin_kind": "a kind of origin",
        "links.code": "random characters",
        "clicks.code": "random characters",
        "click_totals": "counts",
        "link_prefixes": "random characters of the retailer",
    },
)
