#!/bin/sh
set -eu
URL=${API_URL:-http://127.0.0.1:8080}
KEY=${API_KEY:?set it to your API key}

curl -fsS "$URL/v1/subscriptions/opt-in" -H "x-api-key: $KEY" -H "content-type: application/json" -d '{
  "phone_number": "+33612345678",
  "profile_id": "CUST-1042",
  "store_id": "PARIS-01",
  "consent_source": "POINT_OF_SALE",
  "consented_at": "'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'",
  "consent_proof": {"terms_url": "https://shop.example/terms", "terms_version": "2026-01",
                    "source_text": "I want to hear from you by SMS."}
}'
