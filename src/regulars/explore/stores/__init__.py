"""Pages about stores: the list, by sales or by name, and the page of one store."""
