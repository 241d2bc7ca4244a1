"""A person's rights over their data: erasure, and the export of everything about one person.

Owns the table `erasures`, and the work that must be done after a restore before requests are served. It goes through
the personal data that the modules declare, in the order in which they lock their rows.
"""
