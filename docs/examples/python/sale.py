import json
import os
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone

URL = os.environ.get("API_URL", "http://127.0.0.1:8080")
KEY = os.environ["API_KEY"]


def post_safely(path, body, idempotency_key):
    """One key for one ticket: however often it is sent, it is recorded once."""
    headers = {"x-api-key": KEY, "content-type": "application/json", "idempotency-key": idempotency_key}
    data = json.dumps(body).encode()  # Made once: a retry must have the same bytes.
    for attempt in range(6):
        try:
            with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=15) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if attempt == 5 or (error.code not in (408, 409, 429) and error.code < 500):
                raise
            wait = float(error.headers.get("retry-after") or 2**attempt)
        except OSError:  # No response: it may have been recorded or not, and the retry finds out.
            if attempt == 5:
                raise
            wait = 2**attempt
        time.sleep(wait)


answer = post_safely("/v1/sales-events", {
    "external_id": "PARIS-01:000123",
    "type": "PURCHASE",
    "occurred_at": datetime.now(timezone.utc).isoformat(),
    "store_id": "PARIS-01",
    "profile_id": "CUST-1042",
    "currency": "EUR",
    "total_amount_cents": 1990,
    "total_discount_cents": 0,
    "line_items": [{"quantity": 1, "total_price_cents": 1990, "product": {"external_id": "SKU-1", "name": "Scarf"}}],
}, idempotency_key="PARIS-01:000123")
print(answer["sales_event"]["id"], answer["automation"]["state"])
