"""How many stored values a type can read: of every key for the list, and of one key before its type is changed.

A count reads the stored rows in batches. Each batch is a transaction that also stores the progress, so a count goes on
after a crash and counts nothing twice. The composition root passes in where the rows are (profiles, sales).
"""
