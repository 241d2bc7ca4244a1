"""A person's rights over their data: erasure, and the export of everything about one person.

Owns the table `erasures`. After a backup is restored, it repeats the erasures that the backup lacks, before requests
are served. Each module declares its personal data; an erasure calls the modules in a fixed order (`personal.py`).
"""
