"""What happens after the answer: facts recorded in the writing transaction, and the worker's loop over all that waits.

Owns the tables `outbox`, `outbox_retries` and `interests`. It knows no other room: `worker.py` tells it who listens to
which fact, and which queues there are.
"""
