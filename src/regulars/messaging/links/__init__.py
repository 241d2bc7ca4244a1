"""Short links in texts and the clicks on them: their codes, the lookup for the redirect, and the counts of clicks."""
