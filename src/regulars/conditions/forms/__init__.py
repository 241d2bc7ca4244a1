"""The form of a condition tree, for all editors: its fields, the tree while it is edited, and the tree as a page
renders it."""
