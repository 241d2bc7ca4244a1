"""Reads the filters of the attribution overview (period, currency, kind, state) from its URL."""

from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Final

from regulars.analytics.period import PRESETS, Period, read_period
from regulars.attribution.pages.links import PATH
from regulars.links.origin_kind import OriginKind
from regulars.sales.listing import CURRENCIES
from regulars.web.errors import BadFilter
from regulars.web.filtered_view import FilteredView
from regulars.web.form import FormState
from regulars.web.visit import Visit

PRESET_LABELS: Final = {"30d": "30 days", "90d": "90 days", "12m": "12 months"}
KINDS: Final = {
    "": "All",
    OriginKind.CAMPAIGN.value: "Campaigns",
    OriginKind.JOURNEY.value: "Journeys",
}
STATES: Final = {"": "Any", "final": "Final", "provisional": "Provisional", "unmeasured": "No result"}
GROUPS: Final = {"": "Campaign or journey", "month": "Month"}
SORTS: Final = ("net", "cost", "extra", "name")
_CHOICES: Final = {
    "kind": tuple(KINDS),
    "state": tuple(STATES),
    "by": tuple(GROUPS),
    "sort": SORTS,
    "currency": CURRENCIES,
    "rows": ("all",),
}


@dataclass(frozen=True, kw_only=True)
class AttributionView(FilteredView):
    """The overview as its URL describes it."""

    # The name under which users save views of this page.
    page: ClassVar[str] = "attribution"
    today: date
    period: Period

    @property
    def preset_urls(self) -> list[tuple[str, str, bool]]:
        return [
            (PRESET_LABELS[it], self.url(period=it, from_=None, to=None), self.period.preset == it)
            for it in PRESETS
            if it in PRESET_LABELS
        ]


def read_view(visit: Visit) -> AttributionView:
    """Read the view; a wrong period becomes an error of its field in `form`, any other wrong filter raises."""
    today = visit.now.astimezone(visit.format.zone).date()
    period, faults = read_period(visit.query, today, default="90d")
    days = {"from": period.first.isoformat(), "to": period.last.isoformat()}
    form = FormState({name: visit.query.get(name, "") for name in days} if faults else days)
    form.errors.update(faults)
    values: dict[str, str] = {"period": period.preset} if period.preset else dict(days)
    for name, choices in _CHOICES.items():
        text = visit.query.get(name, "")
        if text and text not in choices:
            raise BadFilter(f"The filter {name} has no choice “{text[:40]}”.", path=visit.url(PATH))
        if text:
            values[name] = text
    return AttributionView(path=visit.url(PATH), today=today, period=period, values=values, form=form)
