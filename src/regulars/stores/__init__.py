"""The stores of an organization (specification 2.5, 4.5 and 4.6).

Owns the table `stores`. A store is upserted by its caller's code and never deleted; sales refer to it.
"""
