"""Organizations and their API keys.

Owns the tables `organizations`, `organization_slugs` and `api_keys`. A key is scoped to one organization; all data seen
and written through it is that organization's (specification, section 5).
"""
