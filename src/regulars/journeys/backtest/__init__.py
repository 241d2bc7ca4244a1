"""Backtests: simulate a journey over recorded sales and consents, without sending."""
