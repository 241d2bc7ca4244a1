"""The `Idempotency-Key` header: one execution per key, and the same response again for 24 hours (specification, 4.12).

Owns the table `idempotency_keys`. The record is inserted with its response in the transaction of the write, and its
primary key decides which request was first: the other transaction rolls back, runs again and then finds the stored
response.
"""
