"""Numbers as the sender of texts asks for them: which to use, how it stands, what it is known by."""
