"""Segments: named, versioned filters over customers, counted exactly and able to say why.

Owns `segments`, `segment_versions` and `segment_uses`. A definition is versioned data; `explain` reads one customer's
rows straight from the tables, and is what every other way of evaluating is held against. Serves sections 1, 2.3, 2.6
and 3.3 of the specification.
"""
