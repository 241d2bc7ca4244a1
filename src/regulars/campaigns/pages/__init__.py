"""The pages of campaigns: the list, the page of one while it is sent, its recipients, and the editor."""
