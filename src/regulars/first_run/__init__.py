"""First steps: from an empty organization to its first ticket, and the demo. Owns no table."""
