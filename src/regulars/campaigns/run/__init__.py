"""Runs campaigns: fixes the audience, stores recipients, queues their texts (feeding) and counts outcomes."""
