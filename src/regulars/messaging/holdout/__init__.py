"""The global holdout: customers who get no text of campaigns for a quarter. Owns `holdouts`, `holdout_quarters` and
`holdout_customers`."""
