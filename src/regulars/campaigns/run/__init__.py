"""The run of a campaign: fixes the audience, stores its recipients, queues their texts (feeding) and counts
outcomes."""
