"""The pages of attribution: the overview, the results of a campaign or journey, credited tickets, and the settings."""
