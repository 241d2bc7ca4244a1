"""Segments as they are saved: versions, who uses them, what they read, and their sizes."""
