"""What the pages show before a campaign is sent or approved: its audience, its size and its cost."""

from dataclasses import dataclass
from typing import Any, Final

from regulars.campaigns.confirmed_numbers import RecipientsAndCost, write_cost
from regulars.campaigns.definition import SendNow
from regulars.campaigns.exact_cost import ExactCost, find_exact_cost
from regulars.campaigns.manage import Campaign
from regulars.campaigns.model import most_of
from regulars.campaigns.pages.common import describe_most, find_campaign
from regulars.campaigns.pages.definition_labels import (
    describe_audience,
    describe_freeze,
    describe_path,
    describe_schedule,
    describe_texts,
    name_zone,
)
from regulars.campaigns.pages.figures import Figures, describe_estimate, list_unpriced, load_figures
from regulars.campaigns.pages.reach import list_rules
from regulars.campaigns.text_sizes import AudienceSize
from regulars.columns.client import Analysis
from regulars.links.marks import short_url
from regulars.web.visit import Visit

# The page waits this long for the estimate, because without it there is nothing to confirm.
ESTIMATE_WAIT_S: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignReview:
    campaign: Campaign
    figures: Figures
    exact: ExactCost | None
    audience: list[tuple[str, list[str]]]

    @property
    def size(self) -> AudienceSize | None:
        """The exact size if it was counted; else the estimated size."""
        if self.figures.estimate is None:
            return None
        return self.figures.estimate.size if self.exact is None or self.exact.size is None else self.exact.size

    @property
    def most(self) -> RecipientsAndCost | None:
        """The most that is sent if a user confirms what the page shows."""
        if self.size is None:
            return None
        shown = RecipientsAndCost(self.size.recipients, self.size.cost.known_amounts)
        return most_of(shown, self.campaign.definition.margin_percent)

    def values(self, visit: Visit) -> dict[str, Any]:
        """The values of the template."""
        definition, size, most = self.campaign.definition, self.size, self.most
        estimate = self.figures.estimate
        return {
            "definition": definition,
            "audience": self.audience,
            "schedule": describe_schedule(visit.format, definition),
            "freeze": None if estimate is None else describe_freeze(visit.format, definition, estimate.first_texts_at),
            "is_now": isinstance(definition.schedule, SendNow),
            "zone": name_zone(visit.format.zone, visit.now),
            "texts": describe_texts(visit.format, definition),
            "has_short_links": short_url("", is_demo=visit.organization.is_demo) is not None,
            "faults": [(describe_path(fault.place), fault.message) for fault in self.campaign.faults],
            "figures": self.figures,
            "shown": None if estimate is None else describe_estimate(visit.format, estimate),
            "rules": [] if estimate is None else list_rules(visit.format, estimate, definition),
            "exact": self.exact,
            "size": size,
            "exact_cost": "" if size is None else visit.format.amounts(size.cost.amounts),
            "cost": None if size is None else write_cost(size.cost.known_amounts) or "",
            "unpriced": [] if size is None else list_unpriced(visit.format, size.cost),
            "most": "" if most is None else describe_most(visit.format, most),
        }


async def load_review(visit: Visit, analysis: Analysis) -> CampaignReview:
    async with visit.database.reading() as tx:
        campaign = await find_campaign(tx, visit)
        audience = await describe_audience(tx, visit, campaign.definition)
        exact = await find_exact_cost(tx, visit.organization_id, campaign.row.id)
    figures = Figures(unavailable_reason="It has faults.")
    if not campaign.faults:
        figures = await load_figures(visit, analysis, campaign.definition, seconds=ESTIMATE_WAIT_S)
    return CampaignReview(campaign=campaign, figures=figures, exact=exact, audience=audience)
