"""The last responses of the API for each key, for the developer who integrates with it.

Owns the tables `request_log` and `request_counts`. The log is lossy by design: the server process records responses in
memory and writes them a moment later, those of a busy key only in part; what it has not written when it dies is lost.
It holds no personal data: paths are stored without the customer's own id, and of a refusal only its error.
"""
