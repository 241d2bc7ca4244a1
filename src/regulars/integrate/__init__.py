"""Pages for developers: API keys, the request log, and the API reference.

It is above the rooms that it shows (organizations, the request log, the public reference) and owns no table.
"""
