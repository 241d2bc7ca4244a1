"""Looking for customers: by the beginning of a name, by any id or number, or all of them, the newest first."""
