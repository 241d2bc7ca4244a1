"""Segments: named, versioned filters over customers, with exact counts and an explanation for each customer.

Owns `segments`, `segment_versions`, `segment_uses`, `segment_keys` and `segment_sizes`. `explain` evaluates one
customer from the tables; `analysis/engine` evaluates all customers from a columnar copy, and tests compare both.
Serves sections 1, 2.3, 2.6 and 3.3 of the specification.
"""
