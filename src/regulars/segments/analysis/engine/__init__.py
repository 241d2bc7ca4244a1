"""The analysis process: numpy and Polars live here, and nothing that takes tickets imports it."""
