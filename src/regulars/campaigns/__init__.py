"""Campaigns: one text to the members of segments, at most once per person.

Owns `campaigns`, `campaign_audiences`, `campaign_recipients`, `campaign_totals`, `campaign_costs` and
`campaign_settings`. The audience is frozen at one moment and stored before the first text is queued. The queue of texts
gets a few recipients at a time, so that a campaign can be stopped within seconds.
"""
