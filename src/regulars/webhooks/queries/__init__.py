"""All SQL of this module, one typed function per statement; only this module imports it."""
