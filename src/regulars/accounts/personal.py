"""What accounts store about customers: canonical ids in the audit log, which identify no person after an erasure."""

from typing import Final

from regulars.work.personal import PersonalData

_STAFF: Final = "about the retailer's staff, who are no customers"

PERSONAL_DATA: Final = PersonalData(
    harmless={
        "users": _STAFF,
        "memberships": _STAFF,
        "sessions": _STAFF,
        "sign_in_links": _STAFF,
        "sign_in_failures": _STAFF,
        "sign_in_places": _STAFF,
        "recovery_codes": _STAFF,
        "audit_heads": "hashes over commitments to what staff did",
        "audit_log": "what staff did; a customer stands in it by canonical id, which leads to nobody once erased",
    }
)
