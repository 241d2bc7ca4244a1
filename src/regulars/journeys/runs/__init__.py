"""Runs: a customer's progress through a journey, from the sale or consent that started it to its end."""
