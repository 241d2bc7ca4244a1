"""Who is left out to measure the effect of texts, and how: the global holdout of an organization, the arms of a
campaign, the sides of a split of a journey, and the statistics that compare both groups.

Owns `holdouts`, `holdout_quarters`, `holdout_customers` and `journey_holdouts`.
"""
