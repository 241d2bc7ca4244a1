"""The state of an organization's columns and the format of their runs; columns exist while it has segments or uses
Analyse."""
