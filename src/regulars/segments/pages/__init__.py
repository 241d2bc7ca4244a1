"""The pages of segments: the list, the builder with its figures, members, and why somebody is in or out."""
