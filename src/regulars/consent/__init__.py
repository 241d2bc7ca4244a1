"""Consent to be texted, per phone number: subscriptions on an append-only, hash-chained ledger.

Owns `subscriptions`, `consent_ledger` and `consent_payloads`. A row of `subscriptions` is the *head* of a number's
ledger: its current state and the last hash. The state is a pure function of the number's events (`model.py`) in the
order in which they happened, not in which they arrived. Serves sections 2.4, 3.1, 4.7 and 4.8 of the API specification.
"""
