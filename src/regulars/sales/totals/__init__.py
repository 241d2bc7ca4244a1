"""What was sold in each hour, per store, currency and type: a sum kept beside the sales, so that no page adds them up.

Owns `hourly_totals` and `hourly_totals_fills`. Every sale is counted once: by the listener of new sales, by whoever
loads sales without telling anybody, or, if it was stored before there was a listener, by the fill.
"""
