"""Why did this bring a customer in, why not: the last facts of one customer, held against a journey."""
