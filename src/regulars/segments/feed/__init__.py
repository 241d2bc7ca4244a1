"""Keeps the columns up to date: listeners handle recorded events, and the build copies the rows that existed before."""
