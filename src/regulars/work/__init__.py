"""Background work: queues in database tables, the outbox of facts (events for listeners), and the loop of the worker
process that serves them.

Owns the tables `outbox`, `outbox_retries` and `interests`. It imports no business module: `worker.py` lists the
listeners of each fact, and the queues.
"""
