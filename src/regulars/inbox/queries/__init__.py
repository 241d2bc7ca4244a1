"""The SQL of replies and of lists of messages, one typed function per statement; only this room imports it. A statement
with one caller is in the file of its caller."""
