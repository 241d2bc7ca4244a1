"""What runs saw and decided, line by line, and how often. Owns `journey_trace` and `journey_totals`."""
