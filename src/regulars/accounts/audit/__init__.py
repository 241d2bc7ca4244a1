"""The audit log. Owns the tables `audit_log`, which only grows, and `audit_heads`, the last hash of each chain."""
