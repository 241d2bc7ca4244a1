"""Pages about customers: the list, and the page of one customer."""
