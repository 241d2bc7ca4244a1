"""Saved segments: their versions, the objects that use them, the attributes they read, and their sizes."""
