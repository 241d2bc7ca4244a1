"""Backtests: a definition simulated over recorded sales and consents. Nothing is written and nothing is sent."""
