"""The form of a condition tree, for every editor: its fields, its tree as a form holds it, and as a page draws it."""
