"""The SQL that the modules of this room share, one typed function per statement; only this room imports
it. A statement with one caller is in the file of its caller."""
