"""Pages for whoever connects a system: API keys, the request log, and the API reference in the frame.

It stands above the rooms it shows (organizations, the request log, the public reference) and owns no table.
"""
