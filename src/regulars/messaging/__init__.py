"""Outbound texts and replies: which texts are sent, when, and by which provider.

Owns `texts` (every outbound text and its state), `replies` (what came in), `suppressions`, `sms_settings` and the
simulator's phone. One gate decides, in the transaction that claims a text and under the lock of the subscription that
every withdrawal takes. Journeys and campaigns ask this room to send; nothing else talks to a gateway.
"""
