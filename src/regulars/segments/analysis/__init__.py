"""The client of the analysis process and its protocol; the process itself is in `engine`."""
