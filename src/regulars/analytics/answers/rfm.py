"""Answers the question about RFM: customers in named groups by recency, frequency and money, with today's thresholds.

A score from 1 to 5 is the quintile of a value: it depends on the share of customers with a smaller value, so equal
values have equal scores. Only customers with a purchase and a net above 0 in 24 months have scores; all other customers
are in separate groups. A customer with a purchase after today, from a clock that is ahead, is in no group until then.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from regulars.analytics.answers.purchases import count_days, last_days, purchases_of
from regulars.analytics.answers.tickets import Tickets, date_of, money_of
from regulars.columns.engine.cache import Result
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.numbers import SUM_MAX, Summands, sum_groups
from regulars.columns.engine.sales_runs import ALL_DAYS, SalesSelection
from regulars.columns.questions import RFM_DAYS, Money, Range, RfmAnswer, RfmGroup, RfmName, RfmQuestion

_QUINTILES: Final = 5
# Ranges of scores, first and last included.
_ANY, _HIGH, _MIDDLE, _LOW, _NOT_HIGH = (1, 5), (4, 5), (2, 3), (1, 1), (1, 3)
_Scores = tuple[int, int]


class _Rule(NamedTuple):
    name: RfmName
    recency: _Scores
    frequency: _Scores
    money: _Scores


RULES: Final = (
    _Rule("champions", _HIGH, _HIGH, _HIGH),
    _Rule("loyal", _HIGH, _HIGH, _NOT_HIGH),
    _Rule("big_spenders", _HIGH, _NOT_HIGH, _HIGH),
    _Rule("recent", _HIGH, _NOT_HIGH, _NOT_HIGH),
    _Rule("slowing_high_value", _MIDDLE, _ANY, _HIGH),
    _Rule("slowing", _MIDDLE, _ANY, _NOT_HIGH),
    _Rule("at_risk_high_value", _LOW, _ANY, _HIGH),
    _Rule("at_risk", _LOW, _ANY, _NOT_HIGH),
)
# The index of the rule, by the three scores; every combination of scores is in one rule.
_SCORES: Final = _QUINTILES + 1
_NUMBER_OF_RULE: Final = np.zeros((_SCORES,) * 3, np.int8)
for _number, _rule in enumerate(RULES):
    _NUMBER_OF_RULE[tuple(slice(first, last + 1) for first, last in _rule[1:])] = _number


class _Values(NamedTuple):
    """The values of customers, and for each score the smallest value that has it; None if no value has this or a higher
    score."""

    values: Array
    thresholds: Sequence[int | None]

    def scores(self) -> Array:
        """The score of each value."""
        scores = np.ones(self.values.size, np.int16)
        for threshold in self.thresholds[1:]:
            if threshold is not None:
                scores += self.values >= threshold
        return scores

    def of(self, scores: _Scores) -> tuple[Range, bool]:
        """The range of values with these scores, and whether any value can be in it."""
        low, score_above = self.thresholds[scores[0] - 1], scores[1] + 1
        high = None if score_above > _QUINTILES else self.thresholds[score_above - 1]
        is_possible = low is not None and (high is None or low < high)
        # For the lowest score the range has no lower bound.
        return Range(None if scores[0] == 1 else low, None if high is None else high - 1), is_possible


def answer_rfm(tickets: Tickets, question: RfmQuestion, as_of: datetime) -> RfmAnswer:
    window = tickets.today - RFM_DAYS + 1, tickets.today
    bought = purchases_of(tickets, ALL_DAYS)
    last = last_days(bought, tickets.customer_count)
    frequency = count_days(bought, window, tickets.customer_count)
    nets = _nets(tickets, window)
    code = tickets.cached.dictionaries.currencies.find(question.currency)
    money = nets[code] if code >= 0 else np.zeros(tickets.customer_count, np.int64)
    has_bought = (last > np.iinfo(np.int32).min) & (last <= tickets.today)
    is_recent = has_bought & (last >= window[0])
    scored = is_recent & (money > 0)
    axes = (
        _with_thresholds(last[scored] - np.int32(tickets.today)),
        _with_thresholds(frequency[scored]),
        _with_thresholds(money[scored]),
    )
    # The group of each customer. Rules are disjoint, so each customer has one. After the rules come the groups of
    # customers who bought in 24 months but have no score, who bought only before, and who never bought.
    group_of = np.full(tickets.customer_count, len(RULES) + 2, np.int8)
    group_of[has_bought] = len(RULES) + 1
    group_of[is_recent] = len(RULES)
    ranges = [[axis.of(scores) for axis, scores in zip(axes, rule[1:], strict=True)] for rule in RULES]
    r, f, m = (axis.scores() for axis in axes)
    group_of[scored] = _NUMBER_OF_RULE.take((r * np.int16(_SCORES) + f) * np.int16(_SCORES) + m)
    counts = np.bincount(group_of, minlength=len(RULES) + 3).tolist()
    sums = sum_groups(
        [
            Summands(code * (len(RULES) + 3) + group_of.astype(np.intp), nets[code])
            for code in range(len(tickets.currencies))
        ],
        len(tickets.currencies) * (len(RULES) + 3),
    ).reshape(-1, len(RULES) + 3)
    moneys = [money_of(tickets.currencies, group_sums) for group_sums in sums.T]
    groups = [
        _group(rule, rule_ranges, *group_sums)
        for rule, rule_ranges, group_sums in zip(RULES, ranges, zip(counts, moneys, strict=True), strict=False)
    ]
    in_24_months, before = Range(0, RFM_DAYS - 1), Range(RFM_DAYS, None)
    groups += [
        RfmGroup("no_net", in_24_months, Range(1), Range(None, 0), counts[-3], moneys[-3]),
        RfmGroup("lapsed", before, Range(), Range(), counts[-2], moneys[-2]),
    ]
    return RfmAnswer(
        as_of=as_of,
        today=date_of(tickets.today),
        currency=question.currency,
        customers=int(np.count_nonzero(has_bought)),
        groups=tuple(groups),
        net_cents=money_of(tickets.currencies, sums[:, :-1].sum(axis=1)),
    )


def _nets(tickets: Tickets, window: tuple[int, int]) -> Array:
    """The net, by currency and customer. The sum of large runs (stored chunks of sales) is cached, since new
    sales are in small runs."""
    shape = len(tickets.currencies), tickets.customer_count
    large: list[SalesSelection] = []
    small: list[SalesSelection] = []
    for selection in tickets.select(window, of_customers=True):
        is_large = selection.row_filter is None and tickets.cached.is_large(selection.run.meta)
        (large if is_large else small).append(selection)
    key = ("net of customers", shape[0], *((it.run.meta.id, it.first, it.last) for it in large))
    cached_sums = tickets.cached.results.find_or_add(key, lambda: Result(_sum_nets(large, shape))).holds
    nets = _sum_nets(small, shape)
    if any(max(int(part.max()), -int(part.min())) > SUM_MAX // 2 for part in (cached_sums, nets) if part.size):
        raise OverflowError("a sum exceeds 64 bits")
    # Customers who were added after the sums were cached have higher numbers.
    nets[:, : cached_sums.shape[1]] += cached_sums
    return nets


def _sum_nets(selections: Sequence[SalesSelection], shape: tuple[int, int]) -> Array:
    values = []
    for selection in selections:
        indexes = selection.of("customer")
        if shape[0] > 1:
            # `kind >> 1` is the currency.
            indexes = (selection.of("kind") >> 1).astype(np.intp) * shape[1] + indexes
        values.append(Summands(indexes, selection.of("amount")))
    return sum_groups(values, shape[0] * shape[1]).reshape(shape)


def _with_thresholds(values: Array) -> _Values:
    """Compute the thresholds. The threshold of score `s` is the lowest value for which at least `s - 1` fifths of all
    values are smaller."""
    ordered = np.sort(values)
    # How many values must be smaller, rounded up.
    smaller = -(-np.arange(_QUINTILES) * values.size // _QUINTILES)
    at = ordered[np.minimum(smaller, values.size - 1)] if values.size else ordered
    begins, ends = (np.searchsorted(ordered, at, side) for side in ("left", "right"))
    indexes = np.where(begins >= smaller[: at.size], begins, ends).tolist() if values.size else [0] * _QUINTILES
    return _Values(values, [int(ordered[index]) if index < values.size else None for index in indexes])


def _group(rule: _Rule, ranges: Sequence[tuple[Range, bool]], customers: int, net_cents: Money) -> RfmGroup:
    (recency, _), (frequency, _), (money, _) = ranges
    # Recency is compared as a negative number of days.
    latest, earliest = recency.high, recency.low
    return RfmGroup(
        rule.name,
        Range(0 if latest is None else -latest, RFM_DAYS - 1 if earliest is None else -earliest),
        Range(1 if frequency.low is None else frequency.low, frequency.high),
        Range(1 if money.low is None else money.low, money.high),
        customers,
        net_cents,
        is_possible=all(is_possible for _, is_possible in ranges),
    )
