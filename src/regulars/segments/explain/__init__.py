"""Whether customers are in a segment, and why: their rows straight from the tables, with the values that were seen."""
