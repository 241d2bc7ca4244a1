"""Conditions: the filter language of segments and journeys.

Owns no table. `tree` has the types, `documents` reads definitions in older formats too, `check` finds faults,
`comparisons` compares a value by its declared type, `evaluation` evaluates one customer, `labels` writes sentences.
`docs/conditions.md` has the meaning of every operator. Serves sections 2.3 and 3.3 of the specification.
"""
