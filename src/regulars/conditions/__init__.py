"""Conditions: the one language in which segments and journeys ask about a customer.

Owns no table. `tree` has the types, `upgrade` reads older spellings, `check` finds faults, `comparisons` compares a
value by its declared type, `evaluation` judges one customer, `labels` writes sentences. `docs/conditions.md` has the
meaning of every operator. Serves sections 2.3 and 3.3 of the specification.
"""
