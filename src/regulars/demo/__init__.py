"""Sample data of an invented chain of shops, to try Regulars and to measure it. The same seed gives the same data.

Owns the table `demo_runs`. Stores, profiles and consents are written by the functions that the API calls too. Tickets,
of which there may be millions, are written by the bulk load of `sales`, which stores the same rows (a test shows it).
"""
