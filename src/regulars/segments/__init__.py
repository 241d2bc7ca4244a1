"""Segments: named, versioned filters over customers, counted exactly and able to say why.

Owns `segments`, `segment_versions`, `segment_uses`, `segment_keys` and `segment_sizes`. A definition is versioned data;
`explain` reads one customer's rows straight from the tables, and is what every other way of evaluating is held against.
Serves sections 1, 2.3, 2.6 and 3.3 of the specification.
"""
