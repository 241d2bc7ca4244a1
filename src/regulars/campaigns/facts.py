"""The events of campaigns (facts), which are recorded for listeners in other packages."""

from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class CampaignEnded(Fact, frozen=True):
    """The campaign has ended or was cancelled, so no more of its texts are queued."""

    topic: ClassVar[str] = "campaigns.ended"

    campaign_id: UUID
