"""The personal data of all modules, in the order in which an erasure locks their rows; and the tables of this
module."""

from collections.abc import Mapping
from typing import Final

from regulars.attribution.personal import PERSONAL_DATA as ATTRIBUTION
from regulars.campaigns.personal import PERSONAL_DATA as CAMPAIGNS
from regulars.catalog.personal import PERSONAL_DATA as CATALOG
from regulars.columns.personal import PERSONAL_DATA as COLUMNS
from regulars.consent.personal import PERSONAL_DATA as CONSENT
from regulars.experiments.personal import PERSONAL_DATA as EXPERIMENTS
from regulars.idempotency.model import PERSONAL_DATA as IDEMPOTENCY
from regulars.inbox.personal import PERSONAL_DATA as INBOX
from regulars.journeys.personal import PERSONAL_DATA as JOURNEYS
from regulars.links.personal import PERSONAL_DATA as LINKS
from regulars.profiles.personal import PERSONAL_DATA as PROFILES
from regulars.request_log.entries import PERSONAL_DATA as REQUEST_LOG
from regulars.sales.personal import PERSONAL_DATA as SALES
from regulars.segments.personal import PERSONAL_DATA as SEGMENTS
from regulars.texts.personal import PERSONAL_DATA as TEXTS
from regulars.webhooks.personal import PERSONAL_DATA as WEBHOOKS
from regulars.work.personal import PERSONAL_DATA as WORK
from regulars.work.personal import PersonalData

# The order of an erasure. Consent is first, because it finds the phone numbers. Profiles follow, with the recorded
# events (facts) about them that no listener has handled yet, before the rows that listeners write. Attribution then
# reads journey runs, texts and sales for the last time, before they are erased. Journeys and campaigns come before
# texts. Webhooks come after all facts, so that the rows that their listeners wrote are found.
MODULES: Final[Mapping[str, PersonalData]] = {
    "consent": CONSENT,
    "profiles": PROFILES,
    "attribution": ATTRIBUTION,
    "journeys": JOURNEYS,
    "campaigns": CAMPAIGNS,
    "inbox": INBOX,
    "experiments": EXPERIMENTS,
    "texts": TEXTS,
    "links": LINKS,
    "sales": SALES,
    "columns": COLUMNS,
    "segments": SEGMENTS,
    "webhooks": WEBHOOKS,
    "request_log": REQUEST_LOG,
    "catalog": CATALOG,
    "idempotency": IDEMPOTENCY,
    "work": WORK,
}
_BY_HASH: Final = "a canonical id and keyed hashes, stored so that an erased person stays erased after a restore"
PERSONAL_DATA: Final = PersonalData(
    not_personal={
        "erasures": _BY_HASH,
        "erasures_to_replay": _BY_HASH,
        "restore_marker": "the work that a restore leaves",
    }
)
