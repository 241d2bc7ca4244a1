"""The run of a campaign: freeze the audience, store its recipients, feed them to the queue of texts, count outcomes."""
