"""The pages of the text settings, a text to one customer, and what the pages of messages share."""
