"""How long runs and traces are kept."""
