#!/bin/sh
set -eu
URL=${API_URL:-http://127.0.0.1:8080}
KEY=${API_KEY:?set it to your API key}

# One key for one ticket: however often it is sent, it is recorded once. curl waits and retries on 408, 429 and 5xx.
curl -fsS --retry 5 --retry-all-errors "$URL/v1/sales-events" -H "x-api-key: $KEY" \
  -H "idempotency-key: PARIS-01:000123" -H "content-type: application/json" -d '{
  "external_id": "PARIS-01:000123",
  "type": "PURCHASE",
  "occurred_at": "'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'",
  "store_id": "PARIS-01",
  "profile_id": "CUST-1042",
  "currency": "EUR",
  "total_amount_cents": 1990,
  "total_discount_cents": 0,
  "line_items": [{"quantity": 1, "total_price_cents": 1990, "product": {"external_id": "SKU-1", "name": "Scarf"}}]
}'
