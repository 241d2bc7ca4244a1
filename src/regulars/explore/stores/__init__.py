"""Stores: the list with its leaders, and the page of one."""
