#!/bin/sh
set -eu
URL=${API_URL:-http://127.0.0.1:8080}
KEY=${API_KEY:?set it to your API key}

curl -fsS "$URL/v1/stores" -H "x-api-key: $KEY" -H "content-type: application/json" -d '{
  "external_id": "PARIS-01",
  "name": "Rue de Rivoli",
  "address": {"address_line1": "12 rue de Rivoli", "postal_code": "75004", "locality": "Paris", "country_code": "FR"}
}'
