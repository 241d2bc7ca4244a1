#!/bin/sh
# Verify a delivery: body on standard input, its three headers and the endpoint's secret in the environment.
set -eu
BODY=$(mktemp) && trap 'rm -f "$BODY"' EXIT && cat >"$BODY"
AGE=$(($(date +%s) - WEBHOOK_TIMESTAMP))
[ "$AGE" -le 300 ] && [ "$AGE" -ge -300 ] || { echo "too old or too new"; exit 1; }
SECRET=$(printf '%s' "${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
EXPECTED=$({ printf '%s.%s.' "$WEBHOOK_ID" "$WEBHOOK_TIMESTAMP"; cat "$BODY"; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$SECRET" -binary | openssl base64 -A)
for SIGNATURE in $WEBHOOK_SIGNATURE; do
  [ "$SIGNATURE" = "v1,$EXPECTED" ] && { echo "genuine"; exit 0; }
done
echo "not from Regulars" && exit 1
