"""Conditions: the filter language of segments and journeys.

Owns no table. Each kind of condition is a file of `kinds`, and `tree` lists them. `documents` reads older formats
too, `faults` checks a tree, `comparisons` compares a value by its declared type, `evaluation` evaluates one
customer, `labels` writes sentences, `forms` edits a tree. A kind answers for all customers in the operations of
`column_protocol`. `docs/conditions.md` has the meaning of every operator. Serves sections 2.3 and 3.3 of the
specification.
"""
