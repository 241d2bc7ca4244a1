from tests.webhooks.receiver import receiver
from tests.webhooks.shop import shop

__all__ = ["receiver", "shop"]
