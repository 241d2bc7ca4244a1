"""What this room stores about people: who was erased, by ids and hashes that reveal nothing about them."""

from typing import Final

from regulars.work.personal import PersonalData

_BY_HASH: Final = "a canonical id and keyed hashes, which stay so that a restored backup brings nobody back"

PERSONAL_DATA: Final = PersonalData(
    harmless={
        "erasures": _BY_HASH,
        "erasures_to_replay": _BY_HASH,
        "restore_marker": "what a restore leaves to be done",
    }
)
