"""Sums of the sales of each hour and each day, per store and currency, so that no page adds up sales.

Owns `sales_totals` and `sales_totals_fills`. Every sale is counted once: by the listener of new sales, or by the
*fill*, the job that counts sales from before there was a listener, and all sales again after a change of time zone.
"""
