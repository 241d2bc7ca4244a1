"""The pages of accounts: sign-in, the account, the team, the organization, the audit log."""
