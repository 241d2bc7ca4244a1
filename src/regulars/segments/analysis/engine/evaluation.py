"""A definition over columns: each condition is a column of booleans, groups are and, or, not."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np

from regulars.conditions.check import is_askable
from regulars.conditions.comparisons import holds_of_no_value, holds_on, span_of_when
from regulars.conditions.tree import (
    All,
    Any,
    Condition,
    Consent,
    Country,
    Created,
    Group,
    InSegment,
    Named,
    OfAttribute,
    OfSales,
    Path,
    Texts,
    When,
    innermost_first,
    walk,
)
from regulars.kit.ids import JOURNEY
from regulars.sales.model import Currency
from regulars.segments.analysis.engine.cache import Held, Result
from regulars.segments.analysis.engine.calendar import Zone, number_of
from regulars.segments.analysis.engine.coded_values import UNREADABLE, YES, Values
from regulars.segments.analysis.engine.customer_columns import ATTRIBUTE, TEXTS, LastTexts
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.sales_conditions import Behaviour
from regulars.segments.analysis.protocol import Asked, ConditionCount, Order, Split
from regulars.segments.columns.model import DO_NOT_CONTACT, MAY_BE_TEXTED, NEVER_ASKED, WITHDRAWN

STANDINGS: Final = {
    "may_be_texted": MAY_BE_TEXTED,
    "withdrawn": WITHDRAWN,
    "never_asked": NEVER_ASKED,
    "do_not_contact": DO_NOT_CONTACT,
}
_LONG_AGO: Final = -(1 << 30)


class Evaluation:
    """One question over what is held. Nothing here waits for anything."""

    def __init__(self, held: Held, asked: Asked, zone: Zone) -> None:
        self._held = held
        self._asked = asked
        self._zone = zone
        self._behaviour = Behaviour(held, asked, zone)
        self.alive = self._plain("alive")
        # Who is in the other segments, eight customers to a byte: there may be hundreds of them.
        self._others: dict[str, tuple[Array, Array | None]] = {}
        for segment_id in innermost_first(asked.match, asked.segments):
            other = asked.segments[segment_id]
            if other is not None:
                found = self._look(other)
                unknown = None if found.unknown is None else np.packbits(found.unknown)
                self._others[segment_id] = (np.packbits(found.held), unknown)

    def members(self) -> Array:
        """Who is in it."""
        if self._asked.is_faulty:
            return np.zeros(self._held.size, bool)
        return self._look(self._asked.match).held & self.alive

    def unreadable(self, path: Path) -> Array:
        """Who has a value that the condition at this place cannot read."""
        found = dict(walk(self._asked.match)).get(path)
        unreadable = None if found is None else self._look(found).unreadable
        return np.zeros(self._held.size, bool) if unreadable is None else unreadable & self.alive

    def count(self) -> list[ConditionCount]:
        """For each condition and group of the definition, how many customers it holds for."""
        counts: list[ConditionCount] = []
        self._count(self._asked.match, (), counts)
        return counts

    def keys_of(self, order: Order, currency: Currency) -> Sequence[Array]:
        """What members are sorted by, the key that counts most first."""
        match order:
            case "created":
                return [self._plain("created")]
            case "last_purchase":
                return [self._behaviour.last_purchases()]
            case "spend":
                return [key for key in self._behaviour.spends(currency) if key is not None]

    def split(self, members: Array) -> Split:
        of_each = np.bincount(self._standings()[members], minlength=4).tolist()
        return Split(
            may_be_texted=of_each[MAY_BE_TEXTED],
            withdrawn=of_each[WITHDRAWN],
            never_asked=of_each[NEVER_ASKED],
            do_not_contact=of_each[DO_NOT_CONTACT],
        )

    def _count(self, condition: Condition, path: Path, counts: list[ConditionCount]) -> None:
        held, _, unreadable = self._look(condition)
        counts.append(ConditionCount(path, self._count_alive(held), self._count_alive(unreadable)))
        if isinstance(condition, Group):
            for number, inner in enumerate(condition.of):
                self._count(inner, (*path, number), counts)

    def _count_alive(self, some: Array | None) -> int:
        return 0 if some is None else int(np.count_nonzero(some & self.alive))

    def _look(self, condition: Condition) -> Result:
        if isinstance(condition, Group):
            return self._of_group(condition)
        if isinstance(condition, InSegment):
            return self._of_segment(condition)
        key = self._key(condition)
        known = self._held.results.find(key)
        return known or self._held.results.keep(key, self._evaluate(condition))

    def _of_group(self, group: Group) -> Result:
        """What is not known makes no group hold. So each is counted twice: who holds for sure, and who may hold."""
        inner = [self._look(condition) for condition in group.of]
        sure = [one.held for one in inner]
        is_unsure = any(one.unknown is not None for one in inner)
        may = [one.held if one.unknown is None else one.held | one.unknown for one in inner] if is_unsure else sure
        if isinstance(group, All):
            every = np.logical_and.reduce
            held = every(sure) if inner else np.ones(self._held.size, bool)
            return Result(held, every(may) & ~held if is_unsure else None)
        some = np.logical_or.reduce
        held = some(sure) if inner else np.zeros(self._held.size, bool)
        possible = some(may) if is_unsure else held
        return Result(held if isinstance(group, Any) else ~possible, possible & ~held if is_unsure else None)

    def _of_segment(self, condition: InSegment) -> Result:
        """Of one with a fault nothing is known, and a circle, which no saved segment has, ends here."""
        other = self._others.get(condition.id)
        if other is None:
            return Result(np.zeros(self._held.size, bool), np.ones(self._held.size, bool))
        held, unknown = (None if it is None else np.unpackbits(it, count=self._held.size).view(bool) for it in other)
        if held is None or condition.is_:
            return Result(np.zeros(self._held.size, bool) if held is None else held, unknown)
        return Result(~held if unknown is None else ~(held | unknown), unknown)

    def _key(self, condition: Condition) -> tuple[object, ...]:
        """Whatever the answer depends on: an edit of one condition leaves the others as they were."""
        asked = self._asked
        common = (msgspec.json.encode(condition), self._held.size, asked.today, asked.zone)
        if isinstance(condition, OfAttribute):
            declared = asked.attributes.get(condition.key)
            return (*common, self._held.customers_as_of, declared)
        if isinstance(condition, OfSales):
            declared = None if condition.property is None else asked.properties.get(condition.property.key)
            stores = tuple(asked.stores.get(reference) for reference in condition.stores)
            return (*common, self._held.sales_as_of, declared, stores)
        stores = tuple(asked.stores.get(one) for one in condition.stores) if isinstance(condition, Consent) else ()
        return (*common, self._held.customers_as_of, stores, self._held.forbidden_as_of)

    def _evaluate(self, condition: Condition) -> Result:
        match condition:
            case OfAttribute():
                return self._of_attribute(condition)
            case Consent():
                return Result(self._of_consent(condition) == condition.is_)
            case Texts():
                return Result(self._of_texts(condition))
            case Created(when=when):
                return Result(self._on_day(self._plain("created"), when))
            case Named(is_=wanted):
                return Result(self._plain("named") == wanted)
            case Country(any_of=wanted_codes):
                return Result(self._coded("country", wanted_codes.__contains__))
            case _ if isinstance(condition, OfSales):
                return self._behaviour.look(condition)
            case _:
                # About a ticket, which no segment has: it has a fault, and nothing is known.
                return Result(np.zeros(self._held.size, bool), np.ones(self._held.size, bool))

    def _of_attribute(self, condition: OfAttribute) -> Result:
        declared = self._asked.attributes.get(condition.key)
        if declared is None or not is_askable(condition, self._asked.attributes):
            return Result(np.zeros(self._held.size, bool), np.ones(self._held.size, bool))
        column = self._values(ATTRIBUTE + condition.key)
        read = column.read_as(declared[0], declared[1], self._asked.zone)
        truth = read.truth(condition, column.dictionary.values, self._asked.today, self._held.reading)
        # The code of no value is -1, which is the place at the end.
        held = np.append(truth == YES, holds_of_no_value(condition))[column.codes]
        is_unreadable = np.append(truth == UNREADABLE, False)
        unreadable = is_unreadable[column.codes] if is_unreadable.any() else None
        return Result(held, unreadable, unreadable)

    def _of_consent(self, condition: Consent) -> Array:
        held: Array = self._standings() == STANDINGS[condition.state]
        if condition.sources:
            held &= self._coded("source", condition.sources.__contains__)
        if condition.stores:
            wanted = {self._asked.stores[one].bytes for one in condition.stores if one in self._asked.stores}
            held &= self._coded("store", wanted.__contains__)
        if condition.since is not None:
            held &= self._on_day(self._plain("since"), condition.since)
        return held

    def _of_texts(self, condition: Texts) -> Array:
        texts = self._held.columns[TEXTS]
        if not isinstance(texts, LastTexts):
            raise TypeError("texts are kept as texts")
        today = number_of(self._asked.today)
        days = self._zone.days(texts.at_s)
        got = (days > today - condition.days) & (days <= today)
        if condition.journey is not None:
            journey = JOURNEY.decode(condition.journey)
            code = -1 if journey is None else texts.journeys.find(journey.bytes)
            got &= (texts.journey == code) & (code >= 0)
        held = np.zeros(self._held.size, bool)
        held[texts.customer[got]] = True
        wanted: Array = held == condition.got
        return wanted

    def _on_day(self, seconds: Array, when: When) -> Array:
        """Whether moments lie on days as asked; the smallest of all numbers is no moment."""
        known = seconds > np.iinfo(np.int64).min
        days = np.full(seconds.size, _LONG_AGO, np.int64)
        days[known] = self._zone.days(seconds[known])
        low, high, is_within = span_of_when(when, self._asked.today)
        held = ((days >= number_of(low)) & (days <= number_of(high))) == is_within
        on_day: Array = np.where(known, held, holds_on(when, None, self._asked.today))
        return on_day

    def _standings(self) -> Array:
        """How each customer stands with consent, with what is known of their own number."""
        key = ("standings", self._held.size, self._held.customers_as_of, self._held.forbidden_as_of)
        known = self._held.results.find(key)
        if known is None:
            own = self._plain("own")
            consent = self._plain("consent")
            is_held = (consent == NEVER_ASKED) & (own != 0) & np.isin(own, self._held.forbidden)
            standings = np.where(is_held, DO_NOT_CONTACT, consent).astype(np.uint8)
            known = self._held.results.keep(key, Result(standings))
        return known.held

    def _coded(self, name: str, is_wanted: Callable[[object], bool]) -> Array:
        column = self._values(name)
        table = np.array([*(is_wanted(value) for value in column.dictionary.values), False])
        return table[column.codes]

    def _values(self, name: str) -> Values:
        column = self._held.columns[name]
        if not isinstance(column, Values):
            raise TypeError(f"{name} is kept as codes")
        return column

    def _plain(self, name: str) -> Array:
        column = self._held.columns[name]
        if not isinstance(column, np.ndarray):
            raise TypeError(f"{name} is kept as numbers")
        return column
