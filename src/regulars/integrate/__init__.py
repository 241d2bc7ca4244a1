"""Pages for developers: API keys, the request log, and the API reference. The module owns no database table."""
