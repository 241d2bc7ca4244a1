"""Sums of the sales of each hour and each day, per store and currency, so that no page adds up sales.

Owns `hourly_totals`, `daily_totals` and the tables of their fills. Every sale is counted once in each: by the listener
of new sales, or, if it was stored before there was a listener, by the fill.
"""
