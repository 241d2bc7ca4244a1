"""Pages about consent: statistics, the list of numbers, and the page and certificate of one number."""
