"""The pages "First steps" (from an empty organization to its first ticket) and "Demo". The module owns no database
table."""
