"""The pages about webhooks: endpoints, deliveries, replays, the signature checker and the events."""
