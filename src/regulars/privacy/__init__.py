"""A person's rights over their data: erasure, and the export of everything about one person.

Owns `erasures`, and what must be done after a restore before anything is served. It walks the personal data that the
rooms declare, in the order in which they lock their rows.
"""
