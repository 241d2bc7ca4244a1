"""Sums of the sales of each hour and each day, per store and currency, so that no page adds up sales.

Owns `sales_totals` and `sales_totals_fills`. Every sale is counted once: by the listener of new sales, or by the
*fill*, a job. The fill counts the sales that were recorded before the listener existed, and recounts all sales after a
change of time zone.
"""
