"""The kinds of conditions, each in one file. `tree` lists them."""
