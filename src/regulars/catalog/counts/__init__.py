"""Count how many stored values fit a type: of all keys for the list, or of one key before its type changes.

A count reads the stored rows in batches. Each batch is a transaction that also stores the progress, so after a crash
the count continues and counts nothing twice. `profiles` and `sales` implement the reading of their rows.
"""
