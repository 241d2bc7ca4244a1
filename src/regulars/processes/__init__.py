"""The processes of a running service: the server, the children it supervises, and the database it restarts.

Also two locks: one prevents a second `regulars serve` on a data folder, the other a restore while servers or workers
run.
"""
