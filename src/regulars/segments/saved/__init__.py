"""Segments as they are kept: versions, who uses them, what they read, and their sizes."""
