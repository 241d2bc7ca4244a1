"""Background work: the outbox of facts, queues, and the worker's loop over them.

Owns the tables `outbox`, `outbox_retries` and `interests`. It knows no other room: `worker.py` lists the listeners of
each fact, and the queues.
"""
