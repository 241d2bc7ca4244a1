"""Reads the filters of an analysis from the URL: period, comparison, stores, currency and segment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, get_args
from urllib.parse import urlencode
from uuid import UUID

from regulars.analytics import figures
from regulars.analytics.period import (
    PRESETS,
    Compare,
    Comparison,
    Period,
    Preset,
    comparison_of,
    preset_period,
    read_compare,
    read_period,
)
from regulars.analytics.segment_conditions import resolve_members
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT, STORE, read_reference
from regulars.sales.listing import CURRENCIES
from regulars.sales.model import Currency
from regulars.segments.audience import AudienceRefused
from regulars.segments.saved.manage import find_names, list_segments
from regulars.stores.find import find_stores, list_stores
from regulars.web.access import Action
from regulars.web.filtered_view import FilteredView
from regulars.web.form import FormState
from regulars.web.visit import Visit

STORES_OFFERED_MAX: Final = 500
# More stores would not fit into a URL.
STORES_CHOSEN_MAX: Final = 100
VALUE_CHARACTERS_MAX: Final = 3_000
# How many values of a repeated URL field are read.
LIST_VALUES_MAX: Final = 5
# The fields of the URL that leave sales out.
NARROWING_FIELDS: Final = ("store", "segment", "like", "currency", "in")
PRESET_LABELS: Final[dict[Preset, str]] = {
    "7d": "7 days", "month": "This month", "30d": "30 days", "90d": "90 days", "12m": "12 months",
}  # fmt: skip
COMPARE_LABELS: Final[dict[Compare, str]] = {
    "weekdays": "same weekdays last year",
    "before": "the days before",
    "dates": "same dates last year",
    "none": "nothing",
}


@dataclass(frozen=True, kw_only=True)
class AnalysisView(FilteredView):
    """The filters of an analysis, as its URL describes them."""

    # One of sales, customers, products and stores.
    page: str
    today: date
    period: Period
    compare: Compare
    # The period without fields in the URL.
    default: Preset
    # Only stores with tickets in both periods; false if nothing is compared.
    is_like_for_like: bool
    # The names of the chosen stores by id; empty means all stores.
    stores: Mapping[UUID, str]
    # The names of the chosen stores and of those that the form offers.
    known_stores: Mapping[UUID, str]
    segment: tuple[UUID, str] | None
    offered_segments: Sequence[tuple[str, str]]

    @property
    def comparison(self) -> Comparison | None:
        return comparison_of(self.period, self.compare)

    @property
    def compare_phrase(self) -> str:
        return (
            f"the {self.period.days} days before" if self.compare == "before" else f"the {COMPARE_LABELS[self.compare]}"
        )

    @property
    def segment_id(self) -> UUID | None:
        return None if self.segment is None else self.segment[0]

    @property
    def offered_stores(self) -> list[tuple[str, str, bool]]:
        """The stores sorted by name: id, name and whether it is chosen."""
        rows = sorted(self.known_stores.items(), key=lambda row: row[1].casefold())
        return [(STORE.encode(store_id), name, store_id in self.stores) for store_id, name in rows]

    @property
    def store_ids(self) -> tuple[UUID, ...] | None:
        return tuple(self.stores) or None

    def get_list(self, name: str) -> Sequence[str]:
        value = self.values.get(name, ())
        return () if isinstance(value, str) else value

    def url_of(self, period: Period, **changed: str | None) -> str:
        """The URL of the same analysis in another period."""
        preset = period.preset or ""
        days = (None, None) if preset else (period.first.isoformat(), period.last.isoformat())
        return self.url(period=preset, from_=days[0], to=days[1], **changed)

    @property
    def default_label(self) -> str:
        """The default period in a sentence."""
        return {"30d": "the last 30 days", "12m": "the last 12 months"}[self.default]

    @property
    def default_first(self) -> date:
        return preset_period(self.default, self.today).first

    @property
    def is_default(self) -> bool:
        """Whether the page has all sales of its default period, so that a link to it would change nothing."""
        return self.period.preset == self.default and not any(self.values.get(name) for name in NARROWING_FIELDS)

    def url_of_all_until(self, last: date) -> str:
        """The URL of the page without filters, in its default period as of an earlier day."""
        period = preset_period(self.default, last)
        return f"{self.path}?{urlencode({'from': period.first.isoformat(), 'to': period.last.isoformat()})}"

    @property
    def has_like_for_like(self) -> bool:
        return self.page in {"sales", "stores"}

    @property
    def preset_urls(self) -> list[tuple[str, str, bool]]:
        return [
            (PRESET_LABELS[preset], self.url(period=preset, from_=None, to=None, by=None), self.period.preset == preset)
            for preset in PRESETS
        ]


async def read_view(
    tx: Tx,
    visit: Visit,
    path: str,
    *,
    fields: Sequence[str] = (),
    lists: Sequence[str] = (),
    preset: Preset = "30d",
    compare: Compare = "weekdays",
) -> AnalysisView:
    """Read the filters from the URL. `fields` and `lists` are the names of further fields of this page; a field of
    `lists` may be repeated. `preset` and `compare` are the defaults. An invalid value becomes an error in `form`.
    """
    today = visit.now.astimezone(visit.format.zone).date()
    period, faults = read_period(visit.query, today, default=preset)
    form = FormState({name: visit.query.get(name, "") for name in ("from", "to")} if faults else _day_fields(period))
    form.errors.update(faults)
    compare_kind = read_compare(visit.query.get("compare", ""), default=compare)
    stores, known_stores = await _read_stores(tx, visit, form)
    segment, segments = await _read_segment(tx, visit, form)
    values: dict[str, str | Sequence[str]] = {"period": period.preset} if period.preset else dict(_day_fields(period))
    if compare_kind != compare:
        values["compare"] = compare_kind
    is_like_for_like = visit.query.get("like", "") == "1" and compare_kind != "none"
    if is_like_for_like:
        values["like"] = "1"
    if stores:
        values["store"] = [STORE.encode(store_id) for store_id in stores]
    if segment is not None:
        values["segment"] = SEGMENT.encode(segment[0])
    for name in ("currency", "by", "sort", *fields):
        text = visit.query.get(name, "")
        _check_length(form, name, [text])
        if text and (name != "currency" or text in CURRENCIES):
            values[name] = text
    for name in lists:
        if texts := [text for text in visit.request.query_params.getlist(name) if text]:
            _check_length(form, name, texts)
            values[name] = texts
    return AnalysisView(
        page=path.rpartition("/")[2],
        path=visit.url(path),
        today=today,
        period=period,
        default=preset,
        compare=compare_kind,
        is_like_for_like=is_like_for_like,
        stores=stores,
        known_stores=known_stores,
        segment=segment,
        offered_segments=segments,
        values=values,
        form=form,
    )


def _check_length(form: FormState, name: str, texts: Sequence[str]) -> None:
    if len(texts) > LIST_VALUES_MAX:
        form.refuse(
            name, f"This address has {len(texts)} filters “{name}”. Remove some: {LIST_VALUES_MAX} are possible."
        )
    elif any(len(text) > VALUE_CHARACTERS_MAX for text in texts):
        form.refuse(name, f"Remove the filter “{name}”: its value has more than {VALUE_CHARACTERS_MAX:,} characters.")


def _day_fields(period: Period) -> dict[str, str]:
    return {"from": period.first.isoformat(), "to": period.last.isoformat()}


async def _read_stores(tx: Tx, visit: Visit, form: FormState) -> tuple[dict[UUID, str], dict[UUID, str]]:
    """Read the names of the stores that the user chose, and of all stores that the form offers."""
    listed = await list_stores(tx, visit.organization_id, after=None, limit=STORES_OFFERED_MAX)
    names = {store.id: store.display_name for store in listed}
    texts = [text for text in visit.request.query_params.getlist("store") if text]
    if len(texts) > STORES_CHOSEN_MAX:
        form.refuse(
            "store", f"You chose {len(texts)} stores. Choose at most {STORES_CHOSEN_MAX}, or none for all stores."
        )
    references = {text: read_reference(STORE, text) for text in texts}
    stores_by_reference = await find_stores(tx, visit.organization_id, set(references.values())) if references else {}
    for text, reference in references.items():
        if reference not in stores_by_reference:
            form.refuse("store", f"No store has the ID or code “{text[:80]}”.")
    chosen = [stores_by_reference[each] for each in references.values() if each in stores_by_reference]
    stores = {store.id: names.get(store.id, store.external_id) for store in chosen}
    return stores, {**names, **stores}


async def _read_segment(tx: Tx, visit: Visit, form: FormState) -> tuple[tuple[UUID, str] | None, list[tuple[str, str]]]:
    text = visit.query.get("segment", "")
    if not visit.may(Action.READ_SEGMENTS):
        if text:
            form.refuse("segment", "Your role may not filter by segment. Choose all customers.")
        return None, []
    rows = await list_segments(tx, visit.organization_id)
    offered = [(SEGMENT.encode(row.id), row.name) for row in rows]
    if not text:
        return None, offered
    segment_id = SEGMENT.decode(text)
    names = {} if segment_id is None else await find_names(tx, visit.organization_id, [segment_id])
    if segment_id is None or segment_id not in names:
        form.refuse("segment", "This segment does not exist. It may have been deleted. Choose another one.")
        return None, offered
    try:
        await resolve_members(tx, visit.organization_id, segment_id)
    except AudienceRefused:
        form.refuse(
            "segment", f"The segment “{names[segment_id]}” has an error, so it has no members. Correct it first."
        )
    return (segment_id, names[segment_id]), offered


async def list_currencies(tx: Tx, visit: Visit, view: AnalysisView) -> list[Currency]:
    """The chosen currency first, then the other currencies of the period in these stores."""
    sold = await figures.list_currencies(tx, visit.organization_id, view.period, store_ids=view.store_ids)
    chosen = [currency for currency in get_args(Currency) if currency == view.value("currency")]
    return [*chosen, *(currency for currency in sold if currency not in chosen)]
