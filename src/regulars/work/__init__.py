"""Background work: the outbox of facts, queues, and the worker's loop over them.

Owns the tables `outbox`, `outbox_retries` and `interests`. It imports no business module: `worker.py` lists the
listeners of each fact, and the queues. A fact is an event that is recorded for listeners.
"""
