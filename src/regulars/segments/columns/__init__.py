"""The state of an organization's columns, their runs, and the beginning and end of it all."""
