"""What people answer: kept, understood where it is a keyword, and read by a person where it is not.

Owns `replies` and `suppressions`.
"""
