"""What happens after the answer: facts recorded in the writing transaction, and the worker that acts on them.

Owns the table `outbox` and the job tables of Procrastinate (`procrastinate_*`). It knows no other room: `worker.py`
tells it who listens to which fact, and what to do for every organization on a schedule.
"""
