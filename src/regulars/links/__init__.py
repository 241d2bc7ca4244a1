"""Short links in texts and the clicks on them: their codes, the lookup for the redirect, and the counts of clicks.

Owns `links`, `link_prefixes`, `clicks` and `click_totals`.
"""
