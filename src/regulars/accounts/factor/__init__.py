"""The second factor. Owns the table `recovery_codes` and the columns of `users` that hold the sealed secret."""
