"""The operations in which the kinds of conditions write their answers, over the columns of all customers; each gives a
mask of customers."""

from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Final, Literal
from uuid import UUID

import numpy as np

from regulars.catalog.model import AttributeType
from regulars.columns.engine.cache import CachedColumns, Result
from regulars.columns.engine.calendar import Zone, number_of
from regulars.columns.engine.coded_values import UNREADABLE, YES, CodedColumn, ParsedValues
from regulars.columns.engine.customer_columns import ATTRIBUTE_PREFIX, TEXTS, LastTexts
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.sales_conditions import SalesConditions
from regulars.columns.model import DO_NOT_CONTACT, MAY_BE_TEXTED, NEVER_ASKED, WITHDRAWN
from regulars.columns.protocol import SegmentQuery
from regulars.conditions import tree
from regulars.conditions.check import is_valid_comparison
from regulars.conditions.column_protocol import Code, Flag, Measure, Moment, SalesScope
from regulars.conditions.comparisons import day_range_of_when, holds_on, matches_missing_value

CONSENT_CODES: Final[Mapping[tree.ConsentState, int]] = {
    "may_be_texted": MAY_BE_TEXTED,
    "withdrawn": WITHDRAWN,
    "never_asked": NEVER_ASKED,
    "do_not_contact": DO_NOT_CONTACT,
}
# A day before all days, for customers without a timestamp.
_BEFORE_ALL_DAYS: Final = -(1 << 30)


class ColumnAnswers:
    """Implements `Columns` for one query, without I/O. `segments` has the members of the referenced segments, and the
    customers for whom that is unknown, as bitmaps."""

    def __init__(
        self,
        cached: CachedColumns,
        query: SegmentQuery,
        zone: Zone,
        segments: Mapping[str, tuple[Array, Array | None]],
    ) -> None:
        self._cached = cached
        self._query = query
        self._zone = zone
        self._segments = segments
        self.sales = SalesConditions(cached, query, zone)

    @property
    def today(self) -> date:
        return self._query.today

    def unknown(self) -> Result:
        return Result(np.zeros(self._cached.size, bool), np.ones(self._cached.size, bool))

    def flag(self, column: Flag) -> Result:
        return Result(self._numeric_column(column))

    def code_in(self, column: Code, values: Collection[str]) -> Result:
        coded = self._cached.column(column, CodedColumn)
        stored: Collection[str | bytes] = values
        if column is Code.CONSENT_STORE:
            # The values are references of stores.
            stores = self._query.stores
            stored = [stores[reference].bytes for reference in values if reference in stores]
        return Result(coded.dictionary.mask(stored)[coded.codes])

    def on_day(self, column: Moment, when: tree.When) -> Result:
        """The smallest int64 means no timestamp."""
        seconds = self._numeric_column(column)
        has_time = seconds > np.iinfo(np.int64).min
        days = np.full(seconds.size, _BEFORE_ALL_DAYS, np.int64)
        days[has_time] = self._zone.days(seconds[has_time])
        low, high, is_within = day_range_of_when(when, self.today)
        holds = ((days >= number_of(low)) & (days <= number_of(high))) == is_within
        return Result(np.where(has_time, holds, holds_on(when, None, self.today)))

    def consent_is(self, state: tree.ConsentState) -> Result:
        return Result(self.consent_states() == CONSENT_CODES[state])

    def compare(self, attribute: tree.ValueComparison) -> Result:
        if not is_valid_comparison(attribute, self._query.attributes):
            return self.unknown()
        return self._test_values(
            attribute.key,
            lambda parsed, values: parsed.truth(attribute, values, self.today, self._cached.progress),
            matches_missing=matches_missing_value(attribute),
        )

    def has_anniversary(self, key: str, *, first: date, last: date) -> Result:
        if key not in self._query.attributes or self._query.attributes[key][0] is not AttributeType.DATE:
            return self.unknown()
        return self._test_values(
            key, lambda parsed, values: parsed.have_anniversary(values, first, last, self._cached.progress)
        )

    def got_text(self, *, senders: Collection[UUID] | None = None, days: int | None = None) -> Result:
        texts = self._cached.column(TEXTS, LastTexts)
        customers = texts.customer
        if days is not None:
            today, sent_on = number_of(self.today), self._zone.days(texts.at_s)
            is_counted = (sent_on > today - days) & (sent_on <= today)
            customers = customers[is_counted if senders is None else is_counted & texts.are_from(senders)]
        elif senders is not None:
            customers = customers[texts.are_from(senders)]
        holds = np.zeros(self._cached.size, bool)
        holds[customers] = True
        return Result(holds)

    def in_segment(self, segment_id: str) -> Result:
        """Unknown if the segment is invalid or in a reference cycle, which saved segments cannot form."""
        bitmaps = self._segments.get(segment_id)
        if bitmaps is None:
            return self.unknown()
        size = self._cached.size
        holds, unknown = (None if bits is None else np.unpackbits(bits, count=size).view(bool) for bits in bitmaps)
        return self.unknown() if holds is None else Result(holds, unknown)

    def within(self, scope: SalesScope, measure: Measure, *, low: int | None, high: int | None) -> Result:
        return self.sales.within(scope, measure, low, high)

    def has_ticket(self, scope: SalesScope, *, low: int | None, high: int | None) -> Result:
        return self.sales.has_ticket(scope, low, high)

    def purchased(self, scope: SalesScope, which: Literal["first", "last"], when: tree.When) -> Result:
        return self.sales.purchased(scope, which, when)

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

    def _test_values(
        self, key: str, test: Callable[[ParsedValues, list[str]], Array], *, matches_missing: bool = False
    ) -> Result:
        """Test each distinct value of an attribute once, parsed by the declared type of the attribute."""
        declared, allowed_values = self._query.attributes[key]
        column = self._cached.column(ATTRIBUTE_PREFIX + key, CodedColumn)
        truth = test(column.parse_as(declared, allowed_values, self._query.zone), column.dictionary.values)
        # Code -1 means no value and indexes the last element.
        holds = np.append(truth == YES, matches_missing)[column.codes]
        is_unreadable = np.append(truth == UNREADABLE, False)
        unreadable = is_unreadable[column.codes] if is_unreadable.any() else None
        return Result(holds, unreadable, unreadable)

    def _numeric_column(self, name: str) -> Array:
        return self._cached.column(name, np.ndarray)
