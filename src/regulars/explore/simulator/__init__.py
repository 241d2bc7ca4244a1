"""The simulator: a phone that shows what was sent to a number, and can reply."""
