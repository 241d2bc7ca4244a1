"""Replies: all are stored; a keyword takes effect at once, and any other reply waits for a person's decision.

Owns `replies` and `suppressions`.
"""
