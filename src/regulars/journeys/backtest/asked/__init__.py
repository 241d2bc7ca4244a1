"""Backtests that somebody asked for: played by the worker, because they may take longer than a page may."""
