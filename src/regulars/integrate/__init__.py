"""Pages for developers: API keys, the request log, and the API reference.

It imports the modules whose data it shows (organizations, the request log, the public reference) and owns no table.
"""
