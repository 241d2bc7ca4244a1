"""The processes of a running service: the one that serves, the children it watches, the database it revives.

Also the two locks that keep a second `serve` off the data folder and a restore away from whoever uses the database.
"""
