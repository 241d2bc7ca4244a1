"""A sample chain of shops, to try Regulars and to measure it. The same seed always gives the same data.

Owns `demo_runs`. Stores, profiles and consents go through the use cases of their modules; tickets, of which there may
be millions, through the bulk load of sales, which leaves the same rows (a test shows it).
"""
