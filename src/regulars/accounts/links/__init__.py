"""One-time links. Owns the table `sign_in_links`."""
