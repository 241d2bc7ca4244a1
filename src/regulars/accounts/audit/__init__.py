"""The audit log. Owns the tables `audit_log`, to which rows are only added, and `audit_heads`, the ends of chains."""
