"""The page of the global holdout."""
