"""The last responses of the API for each key, for the developer who integrates with it.

Owns the tables `request_log` and `request_counts`. The log is lossy by design: the server process records responses in
memory and writes them some seconds later, and only part of the responses to a busy key. If the process dies, responses
that are not written yet are lost. The log has no personal data: paths are stored without the caller's id of the
customer, and of the body of a refusal only the error.
"""
