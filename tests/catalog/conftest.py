from tests.support.database_fixtures import anyio_backend, database, database_url, organization_id
from tests.support.visitor import visitor_as

__all__ = ["anyio_backend", "database", "database_url", "organization_id", "visitor_as"]
