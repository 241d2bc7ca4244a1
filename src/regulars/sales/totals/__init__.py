"""Sums of the sales of each hour, per store, currency and type, so that no page adds up sales.

Owns `hourly_totals` and `hourly_totals_fills`. Every sale is counted once: by the listener of new sales,
or, if it was stored before there was a listener, by the fill.
"""
