#!/bin/sh
set -eu
URL=${API_URL:-http://127.0.0.1:8080}
KEY=${API_KEY:?set it to your API key}

curl -fsS "$URL/v1/subscriptions/opt-out" -H "x-api-key: $KEY" -H "content-type: application/json" -d '{
  "phone_number": "+33612345678"
}'
