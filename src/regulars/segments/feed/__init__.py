"""Feeding the columns: listeners of facts, and the build that reads what was there before them."""
