#!/bin/sh
set -eu
URL=${API_URL:-http://127.0.0.1:8080}
KEY=${API_KEY:?set it to your API key}

# Profiles that changed since a moment, page by page. Keep the last cursor: the next run goes on from there.
CURSOR=""
while :; do
  PAGE=$(curl -fsS -G "$URL/v1/profiles" -H "x-api-key: $KEY" \
    --data-urlencode "updated_from=2020-01-01T00:00:00Z" --data-urlencode "limit=200" \
    ${CURSOR:+--data-urlencode "cursor=$CURSOR"})
  printf '%s\n' "$PAGE"
  CURSOR=$(printf '%s' "$PAGE" | sed -n 's/.*"next_cursor":"\([^"]*\)".*/\1/p')
  printf '%s' "$PAGE" | grep -q '"has_more":true' || break
done
