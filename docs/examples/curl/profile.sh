#!/bin/sh
set -eu
URL=${API_URL:-http://127.0.0.1:8080}
KEY=${API_KEY:?set it to your API key}

curl -fsS "$URL/v1/profiles" -H "x-api-key: $KEY" -H "content-type: application/json" -d '{
  "external_id": "CUST-1042",
  "first_name": "Ada",
  "phone_number": "+33612345678",
  "attributes": {"tier": "gold", "birthday": "1990-12-10"}
}'
