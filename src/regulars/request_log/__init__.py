"""The last answers of the API, key by key, for whoever integrates with it.

Owns the tables `request_log` and `request_counts`. The log is lossy by design: answers are noted in the memory of the
server process and written a moment later, a busy key's only in part, and what a process had not written when it died is
lost. It holds no personal data: the path with the customer's own id left out, and of a refusal what it said.
"""
