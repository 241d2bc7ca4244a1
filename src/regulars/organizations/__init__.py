"""Organizations and their API keys.

Owns the tables `organizations`, `organization_slugs` and `api_keys`. A key belongs to one organization and gives access
only to the data of that organization (specification, section 5).
"""
