"""The web pages about tickets and about ticket collisions."""
