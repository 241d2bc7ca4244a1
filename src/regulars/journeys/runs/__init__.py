"""Runs: one customer's way through a journey, from the fact that brought them in to the end, with its trace."""
