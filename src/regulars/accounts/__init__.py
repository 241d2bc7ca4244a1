"""Users of the web application: memberships and roles, sessions, one-time links, the second factor, the audit log.

Owns the tables `users`, `memberships`, `sessions`, `sign_in_links`, `sign_in_failures`, `sign_in_places` and
`recovery_codes`, and with its package `audit` the audit log. `web.access` decides what a role may do; this module
stores which role a user has.
"""
