"""The customers of an organization and their attributes (specification 2.2, 2.3 and 4.1 to 4.4).

Owns the table `profiles`. A caller creates or updates a profile (a customer) under its own id. If a sale names an
unknown customer, a *light profile* is created, which has only that id. `catalog` owns the types of attributes.
"""
