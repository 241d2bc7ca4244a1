"""Runs the embedded PostgreSQL, whose programs come in a Python wheel: its files, its account, its start and stop.

The wheel's own start-up code is not used: as root it widens the permissions of every folder above the data.
Other modules import only `embedded`, `errors` and, for backups, `programs`.
"""
