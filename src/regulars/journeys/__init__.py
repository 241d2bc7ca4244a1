"""Journeys: automations that a customer enters after a recent sale or consent, at most once for each.

Owns `journeys`, `journey_versions`, `journey_drafts`, `journey_activations`, `journey_customers`, `journey_runs`,
`journey_trace`, `journey_holdouts`, `journey_totals` and `journey_backtests`. A definition has versions. A run is one
customer's way through a journey: it follows the version that was live when it started, one step at a time, and records
its decisions in a trace. Implements sections 1, 3.1, 3.2 and 4.7 to 4.9 of the specification.
"""
