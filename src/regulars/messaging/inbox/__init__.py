"""Customers' replies to texts: a keyword such as STOP takes effect at once, other replies wait for a user's decision.

Owns `replies` and `suppressions`.
"""
