"""A person's rights over their data: erasure (and later the export of everything about one person).

Owns `erasures`, and what a restore leaves to be done before anything is served. An erasure asks each room, in the
order in which rooms lock their rows, to erase its own part.
"""
