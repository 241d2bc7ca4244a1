"""Outbound texts: which texts are sent, when, and by which provider.

Owns `texts` (every outbound text and its state), `sms_settings` and the messages of the simulator. One function, the
gate, decides whether a text is sent: in the transaction that claims the text, and under the lock on the subscription
that every withdrawal takes as well. Journeys and campaigns request texts from this room; no other code calls an SMS
provider.
"""
