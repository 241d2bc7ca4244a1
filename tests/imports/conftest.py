from tests.support.database_fixtures import anyio_backend, database, organization_id

__all__ = ["anyio_backend", "database", "organization_id"]
