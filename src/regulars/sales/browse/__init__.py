"""Looking at tickets: the list, a customer's tickets, the neighbours of one, and the inbox of collisions."""
