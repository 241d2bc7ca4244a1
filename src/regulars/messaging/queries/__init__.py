"""The SQL that the modules of the messaging package share, one typed function per statement; only this package imports
it. A statement with one caller is in the file of its caller."""
