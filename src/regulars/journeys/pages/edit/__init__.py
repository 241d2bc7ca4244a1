"""The builder: a draft is changed by small forms, step by step and condition by condition."""
