"""Evaluates conditions for one customer: whether they are true, and the customer's values that decided it.

Segments are counted by a faster evaluation of all customers together; tests compare its results with this module.

There are three results: true, false, and unknown (None), when a value cannot be parsed as the declared type. A group
whose result depends on an unknown condition is unknown too, even *none*. The caller checks the definition for faults
first (`faults.py`) and does not evaluate a definition with a fault.
"""

from collections.abc import Collection
from datetime import date

from regulars.conditions import tree
from regulars.conditions.check import ConditionContext
from regulars.conditions.customers import ConditionExplanation, Customer, Subject
from regulars.conditions.kind import CustomerTests, any_of


class Evaluator:
    """Evaluates conditions for one customer after the other."""

    def __init__(self, context: ConditionContext) -> None:
        self.context = context
        self._tests = CustomerTests(context)
        matches = {key: None if segment.faults else segment.match for key, segment in context.segments.items()}
        all_segments = tree.All(of=tuple(tree.InSegment(id=key) for key in matches))
        order = tree.order_referenced_segments(all_segments, matches)
        self._segments = [(key, match) for key in order if (match := matches[key]) is not None]

    def find_segments(self, customer: Customer, today: date) -> dict[str, bool | None]:
        """Evaluate each segment of the context once: whether the customer is a member."""
        memberships: dict[str, bool | None] = {}
        for segment_id, match in self._segments:
            memberships[segment_id] = self.holds(match, Subject(customer, today, memberships))
        return memberships

    def holds(self, condition: tree.Condition, subject: Subject) -> bool | None:
        return self.explain(condition, subject).holds

    def explain(self, condition: tree.Condition, subject: Subject, path: tree.Path = ()) -> ConditionExplanation:
        if isinstance(condition, tree.Group):
            inner = tuple(self.explain(child, subject, (*path, index)) for index, child in enumerate(condition.of))
            return ConditionExplanation(
                path, condition, combine(condition, [child.holds for child in inner]), None, inner
            )
        holds, observation = condition.answer(subject, self._tests)
        return ConditionExplanation(path, condition, holds, observation)


def combine(group: tree.Group, inner: Collection[bool | None]) -> bool | None:
    match group:
        case tree.All():
            return False if False in inner else None if None in inner else True
        case tree.Any():
            return any_of(inner)
        case _:
            any_holds = any_of(inner)
            return None if any_holds is None else not any_holds
