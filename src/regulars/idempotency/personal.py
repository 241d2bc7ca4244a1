"""What stored responses hold about people. `privacy` reads them last, as long as an erasure has time for it."""

from typing import Final

from regulars.work.personal import PersonalData

PERSONAL_DATA: Final = PersonalData(
    columns=("idempotency_keys.body",),
    harmless={
        "idempotency_keys.key": "chosen by the caller to name a request; it goes after 24 hours",
        "idempotency_keys.fingerprint": "a hash of a whole request; it goes after 24 hours",
        "idempotency_keys.headers": "names of fields that were ignored",
    },
)
