"""How many stored values a type can read: of every key for the list, and of one key before its type is changed.

Counting walks over the stored rows in bites, each a transaction with the note of how far it went, so it goes on after
a crash and counts nothing twice. Who has the rows (profiles, sales) is told by the composition root.
"""
