"""The audit log. Owns the table `audit_log`, which is added to and never changed."""
