"""How long texts and replies are kept, and the totals that stay when they are gone. Owns `text_totals`."""
