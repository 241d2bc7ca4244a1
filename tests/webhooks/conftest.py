from tests.support.database_fixtures import anyio_backend, database, organization_id
from tests.webhooks.receiver import receiver
from tests.webhooks.shop import shop

__all__ = ["anyio_backend", "database", "organization_id", "receiver", "shop"]
