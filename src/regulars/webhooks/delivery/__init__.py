"""Sending what is due: the schedule, the health of an endpoint, the signature, one attempt, and the queue of them."""
