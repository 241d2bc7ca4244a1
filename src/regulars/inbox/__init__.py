"""What customers answer to texts: a keyword such as STOP takes effect at once, other replies wait for a user's
decision; and the conversations with a number.

Owns `replies`, `suppressions` and `erased_replies`.
"""
