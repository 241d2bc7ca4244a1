"""The builder: small forms change the draft, one step or condition at a time."""
