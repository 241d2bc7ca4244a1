"""The pages of accounts: signing in, one's own account, the team, the organization, the audit log."""
