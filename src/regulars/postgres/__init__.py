"""Runs the PostgreSQL that comes in a wheel: where its files are, whose account it uses, how it starts and stops.

The wheel's own start-up code is not used: as root it widens the permissions of every folder above the data.
Callers use `embedded`; the other files are its own, apart from the errors and, for backups, the programs.
"""
