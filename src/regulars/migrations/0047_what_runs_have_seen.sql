-- A run compares sales with the fact that brought its customer in, and, while it waits for a purchase, with those that
-- were there when the wait began: a sale's time is that of its transaction's start, and it may commit after the look.

SET LOCAL lock_timeout = '5s';

ALTER TABLE journey_runs
    ADD COLUMN fact_at timestamptz,
    ADD COLUMN seen_sales uuid[];
