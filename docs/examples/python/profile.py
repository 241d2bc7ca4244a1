import json
import os
import urllib.request

URL = os.environ.get("API_URL", "http://127.0.0.1:8080")
KEY = os.environ["API_KEY"]


def post(path, body):
    headers = {"x-api-key": KEY, "content-type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=15) as response:
        return json.load(response)


profile = post("/v1/profiles", {
    "external_id": "CUST-1042",
    "first_name": "Ada",
    "phone_number": "+33612345678",
    "attributes": {"tier": "gold", "birthday": "1990-12-10"},
})
print(profile["id"])
