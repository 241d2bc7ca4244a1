"""Sales events (tickets): purchases and returns, recorded once, never edited (specification, 2.6, 3.2, 4.9 and 4.10).

Owns the tables `sales_events`, `ticket_collisions` and `ticket_collision_totals`.
Publishes the fact `SalesRecorded`, an event for listeners in other modules.
"""
