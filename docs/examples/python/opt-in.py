import json
import os
import urllib.request
from datetime import datetime, timezone

URL = os.environ.get("API_URL", "http://127.0.0.1:8080")
KEY = os.environ["API_KEY"]


def post(path, body):
    headers = {"x-api-key": KEY, "content-type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=15) as response:
        return json.load(response)


answer = post("/v1/subscriptions/opt-in", {
    "phone_number": "+33612345678",
    "profile_id": "CUST-1042",
    "store_id": "PARIS-01",
    "consent_source": "POINT_OF_SALE",
    "consented_at": datetime.now(timezone.utc).isoformat(),
    "consent_proof": {
        "terms_url": "https://shop.example/terms",
        "terms_version": "2026-01",
        "source_text": "I want to hear from you by SMS.",
    },
})
print(answer["outcome"], answer["subscription"]["status"])
