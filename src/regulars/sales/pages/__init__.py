"""The pages on tickets and on collisions."""
