from tests.support.database_fixtures import anyio_backend, database

__all__ = ["anyio_backend", "database"]
