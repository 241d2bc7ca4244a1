"""Facts of campaigns, for rooms above."""

from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class CampaignEnded(Fact, frozen=True):
    """No text of the campaign is fed from now on: it ended, or it was cancelled."""

    topic: ClassVar[str] = "campaigns.ended"

    campaign_id: UUID
