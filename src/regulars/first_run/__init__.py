"""The first hour: the steps from an empty organization to its first ticket, and the demo beside them. Owns no table."""
