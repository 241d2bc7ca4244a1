"""A person's rights over their data: erasure, and the export of everything about one person.

Owns the table `erasures`, and the work after a restored backup, which must be done before requests are served. Each
module declares its personal data; an erasure calls the modules in a fixed order (`personal.py`).
"""
