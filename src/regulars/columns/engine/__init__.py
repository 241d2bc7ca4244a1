"""The analysis process, which counts segments and sales. Only it imports numpy and Polars; code that ingests sales must
not import it."""
