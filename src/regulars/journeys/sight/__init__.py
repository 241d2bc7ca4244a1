"""What a run sees when it decides: the sale that brought the customer in, the customer, and what they bought before."""
