"""The request log: the last API responses for each API key, for the developer who integrates with the API.

Owns the tables `request_log` and `request_counts`. The log is lossy by design: the server process records responses in
memory and writes them some seconds later, for a busy key only a part of them. If the process dies, responses that are
not written yet are lost. The log has no personal data: paths are stored without the caller's id of the customer, and
bodies only of errors.
"""
