"""Consent: the figures, the list, and the page and certificate of one number."""
