"""Count the stored values that are valid for a type: of all keys for the list, or of one key before its type changes.

A count reads the stored rows in batches. Each batch is a transaction that also stores the progress, so a count goes on
after a crash and counts nothing twice. The composition root passes in where the rows are (profiles, sales).
"""
