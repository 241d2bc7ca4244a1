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


answer = post("/v1/subscriptions/opt-out", {"phone_number": "+33612345678"})
print(answer["outcome"])
