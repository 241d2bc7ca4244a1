"""The `Idempotency-Key` header: one execution per key, and the same response again for 24 hours (specification, 4.12).

Owns the table `idempotency_keys`. A row is inserted with the response in the transaction of the write. The primary key
decides which of two requests with the same key was first: the transaction of the second one rolls back, runs again and
then finds the stored response.
"""
