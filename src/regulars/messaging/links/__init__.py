"""Short links in texts and the clicks on them: codes, the redirect's look-up, classes and counts of clicks."""
