"""The `Idempotency-Key` header: one execution per key, and the same bytes again for 24 hours (specification, 4.12).

Owns the table `idempotency_keys`. The record is inserted with its answer in the transaction of the write, and its
primary key decides who was first: a loser's transaction rolls back, runs again and then finds the winner.
"""
