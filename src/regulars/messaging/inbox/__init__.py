"""Replies: stored, applied where they are a keyword, and left to a person where they are not.

Owns `replies` and `suppressions`.
"""
