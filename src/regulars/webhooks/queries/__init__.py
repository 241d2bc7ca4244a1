"""All SQL of this room, one typed function per statement; only this room imports it."""
