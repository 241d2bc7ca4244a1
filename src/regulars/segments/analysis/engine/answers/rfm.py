"""Customers by recency, frequency and money, in named groups with the thresholds of the day.

A score from 1 to 5 is the quintile of a value by its rank: the share of customers with a smaller value, so equal values
have equal scores. Scores are of customers with a purchase and a net above 0 in 24 months; the others stand apart. A
purchase after today, of a clock that is ahead, takes its customer out of all groups until that day.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from regulars.segments.analysis.engine.answers.purchases import last_days, purchases_of
from regulars.segments.analysis.engine.answers.tickets import Tickets, date_of, money_of
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.numbers import Summands, sum_groups
from regulars.segments.analysis.engine.sales_runs import EVER
from regulars.segments.analysis.questions import RFM_DAYS, Money, Range, RfmAnswer, RfmGroup, RfmName, RfmQuestion

_QUINTILES: Final = 5
# Scores from the first to the last.
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


class _Values(NamedTuple):
    """The values of some customers, and the smallest value of each score; None where no value has it or a higher."""

    values: Array
    thresholds: Sequence[int | None]

    def of(self, scores: _Scores) -> tuple[Range, bool]:
        """The range of values with these scores, and whether there can be any."""
        low, score_above = self.thresholds[scores[0] - 1], scores[1] + 1
        high = None if score_above > _QUINTILES else self.thresholds[score_above - 1]
        is_possible = low is not None and (high is None or low < high)
        # The smallest value of all is no bound.
        return Range(None if scores[0] == 1 else low, None if high is None else high - 1), is_possible


def answer_rfm(tickets: Tickets, question: RfmQuestion, as_of: datetime) -> RfmAnswer:
    window = tickets.today - RFM_DAYS + 1, tickets.today
    bought = purchases_of(tickets, EVER)
    last = last_days(bought, tickets.size)
    frequency = np.bincount(bought.customer[bought.within(window)], minlength=tickets.size)
    nets = _nets(tickets, window)
    code = tickets.kinds_of(question.currency)[0] >> 1
    money = nets[code] if code >= 0 else np.zeros(tickets.size, np.int64)
    has_bought = (last > np.iinfo(np.int32).min) & (last <= tickets.today)
    is_recent = has_bought & (last >= window[0])
    scored = is_recent & (money > 0)
    days_ago = tickets.today - last[scored].astype(np.int64)
    axes = _with_thresholds(-days_ago), _with_thresholds(frequency[scored]), _with_thresholds(money[scored])
    # Rules are disjoint. The last two numbers are of customers without a score, and of those who never bought.
    number = np.full(tickets.size, len(RULES) + 2, np.int8)
    number[has_bought] = len(RULES) + 1
    number[is_recent] = len(RULES)
    ranges = [[axis.of(scores) for axis, scores in zip(axes, rule[1:], strict=True)] for rule in RULES]
    of_scored = np.zeros(axes[0].values.size, np.int8)
    for place, of_rule in enumerate(ranges):
        of_scored[_are_inside(axes, of_rule)] = place
    number[scored] = of_scored
    counts = np.bincount(number, minlength=len(RULES) + 3).tolist()
    sums = sum_groups(
        [
            Summands(code * (len(RULES) + 3) + number.astype(np.intp), nets[code])
            for code in range(len(tickets.currencies))
        ],
        len(tickets.currencies) * (len(RULES) + 3),
    ).reshape(-1, len(RULES) + 3)
    moneys = [money_of(tickets.currencies, of_group) for of_group in sums.T]
    groups = [
        _group(rule, of_rule, *of_group)
        for rule, of_rule, of_group in zip(RULES, ranges, zip(counts, moneys, strict=True), strict=False)
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
    """The net of each currency and customer."""
    shape = len(tickets.currencies), tickets.size
    values = [
        Summands(
            (selection.of("kind") >> 1).astype(np.intp) * shape[1] + selection.of("customer"), selection.of("amount")
        )
        for selection in tickets.select(window, of_customers=True)
    ]
    return sum_groups(values, shape[0] * shape[1]).reshape(shape)


def _with_thresholds(values: Array) -> _Values:
    distinct, counts = np.unique(values, return_counts=True)
    below = np.concatenate(([0], np.cumsum(counts)))[:-1]
    scores = 1 + _QUINTILES * below // max(1, values.size)
    places = np.searchsorted(scores, np.arange(1, _QUINTILES + 1)).tolist()
    return _Values(values, [int(distinct[place]) if place < distinct.size else None for place in places])


def _are_inside(axes: Sequence[_Values], ranges: Sequence[tuple[Range, bool]]) -> Array:
    inside = np.full(axes[0].values.size, all(is_possible for _, is_possible in ranges))
    for axis, (bounds, _) in zip(axes, ranges, strict=True):
        if bounds.low is not None:
            inside &= axis.values >= bounds.low
        if bounds.high is not None:
            inside &= axis.values <= bounds.high
    return inside


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
