from tests.support.room import anyio_backend, database

__all__ = ["anyio_backend", "database"]
