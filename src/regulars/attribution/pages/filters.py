"""Reads the filters of the attribution overview (period, currency, kind, state) from its URL."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Final
from urllib.parse import urlencode

from regulars.analytics.period import PRESETS, Period, read_period
from regulars.attribution.pages.links import PATH
from regulars.messaging.model import OriginKind
from regulars.sales.listing import CURRENCIES
from regulars.web.errors import BadFilter
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
class AttributionView:
    """The overview as its URL describes it. `values` has the fields that differ from the defaults."""

    path: str
    # The name under which users save views of this page.
    page: ClassVar[str] = "attribution"
    today: date
    period: Period
    values: Mapping[str, str]
    form: FormState

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def url(self, *, path: str | None = None, **changed: str | None) -> str:
        """The URL with other values; an empty value removes the field. `from_` is the field `from`."""
        fields = {name.rstrip("_"): value for name, value in changed.items()}
        query = {name: value for name, value in {**self.values, **fields}.items() if value}
        return (path or self.path) + (f"?{urlencode(query)}" if query else "")

    @property
    def query(self) -> str:
        return urlencode(self.values)

    def csv_url(self) -> str:
        return self.url(path=f"{self.path}.csv")

    @property
    def preset_urls(self) -> list[tuple[str, str, bool]]:
        return [
            (PRESET_LABELS[it], self.url(period=it, from_=None, to=None), self.period.preset == it)
            for it in PRESETS
            if it in PRESET_LABELS
        ]

    def hidden(self, shown: tuple[str, ...]) -> list[tuple[str, str]]:
        """The fields of the URL that the form does not show."""
        return [(name, value) for name, value in self.values.items() if name not in shown]

    def require_readable(self) -> "AttributionView":
        """Raise `BadFilter` if the period is wrong. For exports: a file has no form that could show the error."""
        if self.form.is_refused:
            raise BadFilter(" ".join(self.form.errors.values()), path=self.path)
        return self


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
