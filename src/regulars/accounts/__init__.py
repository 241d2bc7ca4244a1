"""People who sign in: users, memberships and roles, sessions, one-time links, the second factor, the audit log.

Owns the tables `users`, `memberships` and `sessions`; its parts own theirs. What a role may do is decided in
`web.access`; which role somebody has is decided here.
"""
