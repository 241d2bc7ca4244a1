"""Send due deliveries: the retry schedule, the health of an endpoint, one attempt, and the queue."""
