"""The client of the analysis process, which counts segments, and its protocol; the process itself is in `engine`."""
