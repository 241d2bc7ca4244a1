"""The pages of campaigns: the list, the progress of a campaign, its recipients, and the editor."""
