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


store = post("/v1/stores", {
    "external_id": "PARIS-01",
    "name": "Rue de Rivoli",
    "address": {"address_line1": "12 rue de Rivoli", "postal_code": "75004", "locality": "Paris", "country_code": "FR"},
})
print(store["id"])
