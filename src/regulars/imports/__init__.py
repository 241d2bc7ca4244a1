"""Files of sales, profiles, stores and consents, taken in through the same use cases and the same rules as the API.

Owns no table. A file is NDJSON, one JSON object a line as the API takes it, or CSV with a header of the same field
names (`docs/imports.md`). Rows that are refused never stop the run, and running a file twice changes nothing.
"""
