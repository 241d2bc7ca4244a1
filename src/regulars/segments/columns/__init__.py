"""The state of an organization's columns and the format of their runs; columns begin and end with its segments."""
