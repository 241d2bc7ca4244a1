"""Customers to try a text on: some whom the trigger concerned lately."""
