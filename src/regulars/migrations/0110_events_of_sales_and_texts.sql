-- oldest server: 0080
-- oldest worker: 0110
-- Endpoints may take events of sales and texts. A worker of an earlier release would consume those facts without making
-- the events.
COMMENT ON COLUMN webhook_endpoints.event_types IS 'names of events, or families such as profile.*';
