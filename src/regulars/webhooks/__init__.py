"""Webhooks: events are sent to the retailer's own systems, signed, at least once, and can be inspected and replayed.

Owns the tables `webhook_endpoints`, `webhook_messages`, `webhook_deliveries` and `webhook_attempts`. It listens
to facts (recorded events) of profiles, consent, sales and texts. `delivery/` sends the due deliveries.
"""
