"""The customers of an organization and their attributes (specification 2.2, 2.3 and 4.1 to 4.4).

Owns the table `profiles`. A profile is upserted by its caller's id, or created as a light profile (an id only)
because a sale named it first. The types of its attributes belong to the catalog.
"""
