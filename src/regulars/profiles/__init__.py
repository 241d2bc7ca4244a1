"""The customers of an organization and their attributes (specification 2.2, 2.3 and 4.1 to 4.4).

Owns the table `profiles`. A profile is upserted under the caller's own id. If a sale names an unknown id, a *light
profile* is created, which has only that id. The types of attributes belong to the catalog.
"""
