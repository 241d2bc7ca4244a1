"""Load generators: wrk with its script for rates, and an open-loop client for latency."""
