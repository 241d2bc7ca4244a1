"""Campaigns: one text to the customers of segments, at most once per person.

Owns `campaigns`, `campaign_audiences`, `campaign_recipients`, `campaign_totals`, `campaign_costs` and
`campaign_settings`. When a campaign starts, its audience is fixed (frozen): the customers are stored before the first
text is queued, and later changes of the segments do not matter. Only a few texts are queued at a time, so that a
campaign can be stopped within seconds.
"""
