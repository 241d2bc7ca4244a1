"""How often a sign-in may fail. Owns the tables `sign_in_failures` and `sign_in_places`."""
