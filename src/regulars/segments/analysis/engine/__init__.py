"""The analysis process. Only it imports numpy and Polars; the code that ingests sales must not import it."""
