"""Import files of sales, profiles, stores and consents, through the same functions and rules as the API.

Owns no table. A file is NDJSON (one JSON object of the API per line), CSV with the field names of the API as its
header, or a spreadsheet (`docs/imports.md`). A refused row does not stop the import, and importing a file twice changes
nothing.
"""
