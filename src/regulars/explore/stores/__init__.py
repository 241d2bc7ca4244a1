"""Pages about stores: the list, ranked by sales, and the page of one store."""
