"""The declared types of profile attributes and of product properties (specification 2.3 and 2.6).

Owns the tables `profile_attributes` and `product_properties`, and in `counts` the tables `catalog_counts` and
`catalog_tallies`. A type decides only how stored values are interpreted; values are never changed or refused.
"""
