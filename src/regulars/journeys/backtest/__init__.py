"""A definition played over what was recorded: nothing is written and nothing is sent."""
