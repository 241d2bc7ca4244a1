"""Webhooks: what happened reaches the retailer's own systems, signed, at least once, and can be seen and replayed.

Owns the tables `webhook_endpoints`, `webhook_messages`, `webhook_deliveries` and `webhook_attempts`. It hears the facts
of profiles and consent; nothing below knows it. `delivery/` sends what is due.
"""
