"""The home page of an organization: recent figures, and what needs a user's attention."""
