"""Runs and versions in lists for people."""
