"""Runs: one customer's way through a journey, from the sale or consent that started it to its end."""
