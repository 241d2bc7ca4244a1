"""Asking the analysis process; the process itself is in `engine`."""
