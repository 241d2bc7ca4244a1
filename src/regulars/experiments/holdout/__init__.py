"""The global holdout: randomly chosen customers who get no campaign texts for a quarter, to measure the effect of
texts. Owns `holdouts`, `holdout_quarters` and `holdout_customers`."""
