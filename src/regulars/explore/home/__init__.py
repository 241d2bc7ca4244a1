"""What happened today and lately, and what needs a person."""
