"""Consent to be texted, per phone number: subscriptions on an append-only, hash-chained ledger.

Owns `subscriptions` (one head per number), `consent_ledger` and `consent_payloads`. A subscription's state is a pure
function of its events (`model.py`) in the order of their own time, not of their arrival. Serves sections 2.4, 3.1, 4.7
and 4.8 of the specification.
"""
