"""A person's rights over their data: erasure, and the export of everything about one person.

Owns `erasures`, and what a restore leaves to be done before anything is served. It walks what the rooms declare about
personal data, in the order in which they lock their rows.
"""
