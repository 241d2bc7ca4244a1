"""Evaluates the conditions of a segment for all customers at once, over columns in memory: each condition gives a mask
of customers, and groups combine masks with and, or, not."""

from collections.abc import Sequence

import msgspec
import numpy as np

from regulars.columns.engine.cache import CachedColumns, Result
from regulars.columns.engine.calendar import Zone
from regulars.columns.engine.coded_values import CodedColumn
from regulars.columns.engine.column_answers import ColumnAnswers
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.required_columns import RequiredColumns
from regulars.columns.model import DO_NOT_CONTACT, MAY_BE_TEXTED, NEVER_ASKED, WITHDRAWN
from regulars.columns.protocol import ConditionCount, ConsentSplit, Order, SegmentQuery
from regulars.conditions import tree
from regulars.experiments.sums import WeeklySpend
from regulars.sales.model import Currency


class Evaluation:
    """Evaluates one query over cached columns, without I/O. A column may have codes instead of values; code -1 means no
    value."""

    def __init__(self, cached: CachedColumns, query: SegmentQuery, zone: Zone) -> None:
        self._cached = cached
        self._query = query
        self.alive = cached.column("alive", np.ndarray)
        # Members of the referenced segments as bitmaps, since there may be hundreds of segments.
        segments: dict[str, tuple[Array, Array | None]] = {}
        self._columns = ColumnAnswers(cached, query, zone, segments)
        for segment_id in tree.order_referenced_segments(query.match, query.segments):
            match = query.segments[segment_id]
            if match is not None:
                result = self._result_of(match)
                unknown = None if result.unknown is None else np.packbits(result.unknown)
                segments[segment_id] = (np.packbits(result.holds), unknown)

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
                return [self._cached.column("created", np.ndarray)]
            case "last_purchase":
                return [self._columns.sales.last_purchases()]
            case "spend":
                return [key for key in self._columns.sales.spends(currency) if key is not None]

    def count_by_consent(self, members: Array) -> ConsentSplit:
        """The number of members in each consent state."""
        counts = np.bincount(self._columns.consent_states()[members], minlength=4).tolist()
        return ConsentSplit(
            may_be_texted=counts[MAY_BE_TEXTED],
            withdrawn=counts[WITHDRAWN],
            never_asked=counts[NEVER_ASKED],
            do_not_contact=counts[DO_NOT_CONTACT],
        )

    def consent_states(self) -> Array:
        return self._columns.consent_states()

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
        return self._columns.sales.weekly_spends(members)

    def _count_alive(self, mask: Array | None) -> int:
        return 0 if mask is None else int(np.count_nonzero(mask & self.alive))

    def _result_of(self, condition: tree.Condition) -> Result:
        if isinstance(condition, tree.Group):
            return self._evaluate_group(condition)
        if condition.references().segments:
            # The members of other segments are stored as bitmaps.
            return condition.over_columns(self._columns)
        return self._cached.results.find_or_add(
            self._cache_key(condition), lambda: condition.over_columns(self._columns)
        )

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

    def _cache_key(self, condition: tree.Leaf) -> tuple[object, ...]:
        """The cache key contains everything that the result depends on, so if a user edits a condition, the cached
        results of the other conditions remain valid."""
        query, cached = self._query, self._cached
        required, references = RequiredColumns.of(condition, query.today), condition.references()
        return (
            msgspec.json.encode(condition),
            (cached.size, query.today, query.zone),
            tuple(query.attributes.get(key) for key in references.attributes),
            tuple(query.properties.get(key) for key in references.properties),
            tuple(query.stores.get(reference) for reference in references.stores),
            cached.customers_as_of if required.customers else None,
            cached.sales_as_of if required.sales else None,
            cached.do_not_contact_as_of if required.reads_consent else None,
        )
