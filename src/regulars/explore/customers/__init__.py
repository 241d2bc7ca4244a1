"""Customers: the list, the page of one, their data as a file, and their erasure."""
