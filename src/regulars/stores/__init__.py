"""The stores of an organization (specification 2.5, 4.5 and 4.6).

Owns the table `stores`. A caller creates or updates a store under its own store code. A store is never deleted, because
sales refer to it.
"""
