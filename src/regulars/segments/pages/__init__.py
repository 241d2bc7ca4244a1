"""The pages of segments: the list, the builder with its counts, members, and why a customer is in or out."""
