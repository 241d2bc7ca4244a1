"""The room of http."""
