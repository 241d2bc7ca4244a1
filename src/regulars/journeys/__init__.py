"""Journeys: automations that a recent sale or consent enters at most once.

Owns `journeys`, `journey_versions`, `journey_drafts`, `journey_activations`, `journey_customers`, `journey_runs`,
`journey_trace`, `journey_totals` and `journey_backtests`. A definition is versioned data; a run follows the version it
entered by, one step at a time, and keeps what it saw and decided. Serves sections 1, 3.1, 3.2 and 4.7 to 4.9 of the
specification.
"""
