"""Texts whose origin pauses: they stay queued, without a due time, until it goes on."""
