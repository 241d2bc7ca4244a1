"""All SQL of the messaging package, one typed function per statement; only this package imports it."""
