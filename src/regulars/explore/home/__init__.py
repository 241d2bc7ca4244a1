"""The home page of an organization: recent sales and texts, and what needs a user's attention."""
