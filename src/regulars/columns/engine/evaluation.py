"""Evaluates the conditions of a segment for all customers at once, over columns in memory: each condition gives a mask
of customers, and groups combine masks with and, or, not."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from regulars.columns.engine.cache import CachedColumns, Result
from regulars.columns.engine.calendar import Zone, number_of
from regulars.columns.engine.coded_values import UNREADABLE, YES, CodedColumn
from regulars.columns.engine.customer_columns import ATTRIBUTE_PREFIX, TEXTS, LastTexts
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.sales_conditions import SalesConditions
from regulars.columns.model import DO_NOT_CONTACT, MAY_BE_TEXTED, NEVER_ASKED, WITHDRAWN
from regulars.columns.protocol import ConditionCount, ConsentSplit, Order, SegmentQuery
from regulars.conditions import tree
from regulars.conditions.check import is_valid_comparison
from regulars.conditions.comparisons import day_range_of_when, holds_on, matches_missing_value
from regulars.experiments.sums import WeeklySpend
from regulars.kit.ids import CAMPAIGN, JOURNEY
from regulars.sales.model import Currency

CONSENT_CODES: Final[Mapping[tree.ConsentState, int]] = {
    "may_be_texted": MAY_BE_TEXTED,
    "withdrawn": WITHDRAWN,
    "never_asked": NEVER_ASKED,
    "do_not_contact": DO_NOT_CONTACT,
}
# A day before all days, for customers without a timestamp.
_BEFORE_ALL_DAYS: Final = -(1 << 30)


class Evaluation:
    """Evaluates one query over cached columns, without I/O. A column may have codes instead of values; code -1 means no
    value."""

    def __init__(self, cached: CachedColumns, query: SegmentQuery, zone: Zone) -> None:
        self._cached = cached
        self._query = query
        self._zone = zone
        self._sales = SalesConditions(cached, query, zone)
        self.alive = self._numeric_column("alive")
        # Members of the referenced segments as bitmaps, since there may be hundreds of segments.
        self._segments: dict[str, tuple[Array, Array | None]] = {}
        for segment_id in tree.order_referenced_segments(query.match, query.segments):
            match = query.segments[segment_id]
            if match is not None:
                result = self._result_of(match)
                unknown = None if result.unknown is None else np.packbits(result.unknown)
                self._segments[segment_id] = (np.packbits(result.holds), unknown)

    def members(self) -> Array:
        """A mask of the members."""
        if self._query.is_faulty:
            return np.zeros(self._cached.size, bool)
        return self._result_of(self._query.match).holds & self.alive

    def unreadable(self, path: tree.Path) -> Array:
        """A mask of customers with a value that the condition at this path cannot parse."""
        condition = dict(tree.walk(self._query.match)).get(path)
        unreadable = None if condition is None else self._result_of(condition).unreadable
        return np.zeros(self._cached.size, bool) if unreadable is None else unreadable & self.alive

    def count(self) -> list[ConditionCount]:
        """Count, for each condition and group of the definition, the customers for whom it is true."""
        results = ((path, self._result_of(condition)) for path, condition in tree.walk(self._query.match))
        return [
            ConditionCount(path, self._count_alive(result.holds), self._count_alive(result.unreadable))
            for path, result in results
        ]

    def sort_keys_of(self, order: Order, currency: Currency) -> Sequence[Array]:
        """The sort keys, the primary key first."""
        match order:
            case "created":
                return [self._numeric_column("created")]
            case "last_purchase":
                return [self._sales.last_purchases()]
            case "spend":
                return [key for key in self._sales.spends(currency) if key is not None]

    def count_by_consent(self, members: Array) -> ConsentSplit:
        """The number of members in each consent state."""
        counts = np.bincount(self.consent_states()[members], minlength=4).tolist()
        return ConsentSplit(
            may_be_texted=counts[MAY_BE_TEXTED],
            withdrawn=counts[WITHDRAWN],
            never_asked=counts[NEVER_ASKED],
            do_not_contact=counts[DO_NOT_CONTACT],
        )

    def count_countries(self, members: Array) -> list[tuple[str | None, int]]:
        """Members by the country of their own number, the most frequent first."""
        countries = self._cached.column("country", CodedColumn)
        values: list[str | None] = [None, *countries.dictionary.values]
        # Code -1 means no number.
        counts = np.bincount(countries.codes[members] + 1, minlength=len(values)).tolist()
        pairs = [(country, count) for country, count in zip(values, counts, strict=True) if count]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0] or ""))

    def weekly_spends(self, members: Array) -> list[WeeklySpend]:
        """The net spend per member and week, for each currency."""
        return self._sales.weekly_spends(members)

    def _count_alive(self, mask: Array | None) -> int:
        return 0 if mask is None else int(np.count_nonzero(mask & self.alive))

    def _result_of(self, condition: tree.Condition) -> Result:
        if isinstance(condition, tree.Group):
            return self._evaluate_group(condition)
        if isinstance(condition, tree.InSegment):
            return self._evaluate_segment(condition)
        return self._cached.results.find_or_add(self._cache_key(condition), lambda: self._evaluate(condition))

    def _evaluate_group(self, group: tree.Group) -> Result:
        """Evaluate a group twice: whether it is certainly true, and whether it may be true. If it may be true, but not
        certainly, it depends on an unknown result; then it is unknown, which does not count as true."""
        inner = [self._result_of(condition) for condition in group.of]
        certain = [result.holds for result in inner]
        has_unknown = any(result.unknown is not None for result in inner)
        possible = (
            [result.holds if result.unknown is None else result.holds | result.unknown for result in inner]
            if has_unknown
            else certain
        )
        if isinstance(group, tree.All):
            all_of = np.logical_and.reduce
            holds = all_of(certain) if inner else np.ones(self._cached.size, bool)
            return Result(holds, all_of(possible) & ~holds if has_unknown else None)
        any_of = np.logical_or.reduce
        holds = any_of(certain) if inner else np.zeros(self._cached.size, bool)
        may_hold = any_of(possible) if has_unknown else holds
        return Result(holds if isinstance(group, tree.Any) else ~may_hold, may_hold & ~holds if has_unknown else None)

    def _evaluate_segment(self, condition: tree.InSegment) -> Result:
        """Look up the members of a referenced segment; unknown if the segment is invalid or in a reference cycle, which
        saved segments cannot form."""
        bitmaps = self._segments.get(condition.id)
        if bitmaps is None:
            return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))
        holds, unknown = (
            None if bits is None else np.unpackbits(bits, count=self._cached.size).view(bool) for bits in bitmaps
        )
        if holds is None or condition.is_:
            return Result(np.zeros(self._cached.size, bool) if holds is None else holds, unknown)
        return Result(~holds if unknown is None else ~(holds | unknown), unknown)

    def _cache_key(self, condition: tree.Condition) -> tuple[object, ...]:
        """The cache key contains everything that the result depends on, so if a user edits a condition, the cached
        results of the other conditions remain valid."""
        query = self._query
        common = (msgspec.json.encode(condition), self._cached.size, query.today, query.zone)
        if isinstance(condition, tree.OfAttribute):
            declared = query.attributes.get(condition.key)
            return (*common, self._cached.customers_as_of, declared)
        if isinstance(condition, tree.SalesCondition):
            declared = None if condition.property is None else query.properties.get(condition.property.key)
            stores = tuple(query.stores.get(reference) for reference in condition.stores)
            return (*common, self._cached.sales_as_of, declared, stores)
        stores = tuple(query.stores.get(key) for key in condition.stores) if isinstance(condition, tree.Consent) else ()
        return (*common, self._cached.customers_as_of, stores, self._cached.do_not_contact_as_of)

    def _evaluate(self, condition: tree.Condition) -> Result:
        match condition:
            case tree.OfAttribute():
                return self._evaluate_attribute(condition)
            case tree.Consent():
                return Result(self._evaluate_consent(condition) == condition.is_)
            case tree.Texts():
                return Result(self._evaluate_texts(condition))
            case tree.ReceivedCampaign():
                return Result(self._evaluate_campaign(condition) == condition.is_)
            case tree.Created(when=when):
                return Result(self._evaluate_day(self._numeric_column("created"), when))
            case tree.Named(is_=expected):
                return Result(self._numeric_column("named") == expected)
            case tree.Country(any_of=countries):
                return Result(self._mask_values("country", countries))
            case _ if isinstance(condition, tree.SalesCondition):
                return self._sales.evaluate(condition)
            case _:
                # A condition on a ticket is not valid in a segment, so its result is unknown.
                return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))

    def _evaluate_attribute(self, condition: tree.OfAttribute) -> Result:
        declared = self._query.attributes.get(condition.key)
        if declared is None or not is_valid_comparison(condition, self._query.attributes):
            return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))
        column = self._cached.column(ATTRIBUTE_PREFIX + condition.key, CodedColumn)
        parsed = column.parse_as(declared[0], declared[1], self._query.zone)
        truth = parsed.truth(condition, column.dictionary.values, self._query.today, self._cached.progress)
        # Code -1 means no value and indexes the last element.
        holds = np.append(truth == YES, matches_missing_value(condition))[column.codes]
        is_unreadable = np.append(truth == UNREADABLE, False)
        unreadable = is_unreadable[column.codes] if is_unreadable.any() else None
        return Result(holds, unreadable, unreadable)

    def _evaluate_consent(self, condition: tree.Consent) -> Array:
        holds: Array = self.consent_states() == CONSENT_CODES[condition.state]
        if condition.sources:
            holds &= self._mask_values("source", condition.sources)
        if condition.stores:
            ids = self._query.stores
            store_ids = [ids[reference].bytes for reference in condition.stores if reference in ids]
            holds &= self._mask_values("store", store_ids)
        if condition.since is not None:
            holds &= self._evaluate_day(self._numeric_column("since"), condition.since)
        return holds

    def _evaluate_texts(self, condition: tree.Texts) -> Array:
        """A mask of the customers who got a text in the last days, or of those who got none."""
        texts = self._cached.column(TEXTS, LastTexts)
        today = number_of(self._query.today)
        days = self._zone.days(texts.at_s)
        is_counted = (days > today - condition.days) & (days <= today)
        if condition.journey is not None:
            is_counted &= texts.are_from(JOURNEY.decode(condition.journey))
        matches: Array = self._mask_customers(texts.customer[is_counted]) == condition.got
        return matches

    def _evaluate_campaign(self, condition: tree.ReceivedCampaign) -> Array:
        texts = self._cached.column(TEXTS, LastTexts)
        return self._mask_customers(texts.customer[texts.are_from(CAMPAIGN.decode(condition.id))])

    def _mask_customers(self, numbers: Array) -> Array:
        mask = np.zeros(self._cached.size, bool)
        mask[numbers] = True
        return mask

    def _evaluate_day(self, seconds: Array, when: tree.When) -> Array:
        """Whether each timestamp is on a day that matches the condition; the smallest int64 means no timestamp."""
        has_time = seconds > np.iinfo(np.int64).min
        days = np.full(seconds.size, _BEFORE_ALL_DAYS, np.int64)
        days[has_time] = self._zone.days(seconds[has_time])
        low, high, is_within = day_range_of_when(when, self._query.today)
        holds = ((days >= number_of(low)) & (days <= number_of(high))) == is_within
        matches: Array = np.where(has_time, holds, holds_on(when, None, self._query.today))
        return matches

    def consent_states(self) -> Array:
        """The consent state of each customer, including do-not-contact entries for their own number."""
        key = ("consent states", self._cached.size, self._cached.customers_as_of, self._cached.do_not_contact_as_of)
        return self._cached.results.find_or_add(key, self._compute_consent_states).holds

    def _compute_consent_states(self) -> Result:
        # The hash of the customer's own phone number; 0 without a number.
        own_hash = self._numeric_column("own")
        consent = self._numeric_column("consent")
        is_listed = (own_hash != 0) & np.isin(own_hash, self._cached.do_not_contact_hashes)
        is_do_not_contact = (consent == NEVER_ASKED) & is_listed
        return Result(np.where(is_do_not_contact, DO_NOT_CONTACT, consent).astype(np.uint8))

    def _mask_values(self, name: str, values: Sequence[object]) -> Array:
        """A mask of the customers who have one of these values in a column."""
        column = self._cached.column(name, CodedColumn)
        return column.dictionary.mask(values)[column.codes]

    def _numeric_column(self, name: str) -> Array:
        return self._cached.column(name, np.ndarray)
